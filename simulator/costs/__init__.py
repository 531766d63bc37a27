"""Pure functions from specs and shapes to seconds, bytes and FLOP."""
