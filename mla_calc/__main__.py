"""``python -m mla_calc`` is ``mla-calc``."""

from .cli.main import main

if __name__ == "__main__":
    main()
