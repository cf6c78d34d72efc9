"""What we know about text and vectors: pure functions and structs, no Faust, no clock, no network."""
