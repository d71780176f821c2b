"""Table B of the embedded encoder: good additions against damaged, foreign and primitive ones.

python benchmarks/lite_fit.py --corpus run/corpus --references references/dungeon-tiles
"""

from __future__ import annotations

import sys

from assetscore.encoders.lite.evaluate import main

if __name__ == "__main__":
    main(["--table", "B", *sys.argv[1:]])
