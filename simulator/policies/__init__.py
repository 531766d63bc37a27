"""Decision rules and laws: frozen models with parameters and pure methods, one family a file."""
