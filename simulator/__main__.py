"""``python -m simulator`` is the command ``rollcast``."""

from simulator.cli.app import main

if __name__ == "__main__":
    main()
