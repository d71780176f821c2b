"""Table C of the embedded encoder: a picture's own word against others, as the semantic check and in the joint space.

python benchmarks/lite_request.py --corpus run/corpus
"""

from __future__ import annotations

import sys

from assetscore.encoders.lite.evaluate import main

if __name__ == "__main__":
    main(["--table", "C", *sys.argv[1:]])
