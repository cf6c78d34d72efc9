"""What people teach: verdicts on alerts, the correction they make to each query, and which posts to ask about next.

records: a label, as it travels   fit: labels → corrections   choice: what to label next   precision: what was measured
"""
