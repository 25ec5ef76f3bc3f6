"""orthocal on Dask: the same losses, calibrators and verdicts for data larger than memory, or than one machine.

A ``dask.dataframe`` goes in, and the work is done wherever the user's ``distributed.Client`` is connected to; without one, on the
threads of this machine. Rows never gather in one place: every pass over the partitions returns sums, which are merged.
Install with ``pip install orthocal[dask]``.
"""

from orthocal.engines.dask.calibrator import CausalCalibrator
from orthocal.engines.dask.verdict import assess

__all__ = ["CausalCalibrator", "assess"]
