"""`python -m mendflow.pilot --server URL --work FOLDER`: starts without the rest of the product.

Modules stay as long as the process, so garbage is neither looked for while they load, nor among them at the end."""

import gc
import importlib
import sys

gc.disable()
main = importlib.import_module("mendflow.pilot.main").main
gc.freeze()
gc.enable()
try:
    sys.exit(main())
finally:
    gc.freeze()
