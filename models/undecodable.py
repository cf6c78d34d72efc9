"""What decoding anybody's bytes may raise: bytes that are no UTF-8, and nesting without end, are told by other errors
than msgspec's own. Apart from models/errors.py, which needs nothing: a command's help is shown without msgspec.
"""

import msgspec

__all__ = ["UNDECODABLE"]

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
