"""`models.characters`, under the name `training.robust` knows it by."""

from models.characters import BYTES, CharacterAwareEncoder, CharacterEncoder, Shape, load_character_encoder, words_of

__all__ = ["BYTES", "CharacterAwareEncoder", "CharacterEncoder", "Shape", "load_character_encoder", "words_of"]
