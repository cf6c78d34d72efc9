"""Offline jobs that make and judge encoders. Each runs as `python -m training.<job> PRESET key=value …`."""
