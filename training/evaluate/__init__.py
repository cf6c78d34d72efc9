"""Measures of an encoder: `python -m training.evaluate ENCODER …` prints them and writes one JSON."""
