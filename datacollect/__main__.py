"""``python -m datacollect`` is the command line."""

from __future__ import annotations

from datacollect.commands.main import main

if __name__ == "__main__":
    main()
