"""Table A of the embedded encoder: are two questions about one picture answered differently? Held-out art.

    python benchmarks/lite_senses.py --corpus run/corpus

`run` is the --work folder of the recipe, `python -m assetscore.encoders.lite.train`.
"""

from __future__ import annotations

import sys

from assetscore.encoders.lite.evaluate import main

if __name__ == "__main__":
    main(["--table", "A", *sys.argv[1:]])
