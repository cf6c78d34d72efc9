"""The steps a post goes through, pure: stages over frames, and a replay of them over a file. No client, no clock, no
settings.
"""
