"""An encoder version, live: which one is current, how a worker takes it over, tries it beside the stream and rolls it
back.
"""
