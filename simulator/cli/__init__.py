"""The command line: it parses, calls and prints; it computes nothing."""
