# SPDX-License-Identifier: Apache-2.0
"""torchrun that leaves workers the whole grace period: python -m kuota.elastic.run train.py.

It takes torchrun's arguments and environment variables. torchrun kills workers 30 seconds after it
sent them SIGTERM; from PyTorch 2.12 on --shutdown-timeout changes that for its own end, but not for a
start at a new size. Here, in every version, both wait for TORCH_ELASTIC_SHUTDOWN_TIMEOUT, which Kuota
sets to the gracefulShutdownTimeoutInSeconds of the ElasticJob, less what torchrun needs to end.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from typing import Any

def grace() -> float:
    """Returns how long workers may take to end, in seconds."""
    return float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") or 30)


def patient(seconds: float) -> None:
    """Lets torchrun in this process wait so long for its workers, whyever they end."""
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.multiprocessing.api import PContext

    close = PContext.close

    def wait(self: Any, death_sig: Any = None, timeout: float = 30) -> None:
        close(self, death_sig, max(timeout, seconds))

    PContext.close = wait
    # From PyTorch 2.3 to 2.7 an agent that is asked to end closes the rendezvous for all others, so that
    # the training of the pods that stay fails (pytorch#152525).
    shutdown = LocalElasticAgent._shutdown
    if "is_restart" in inspect.signature(shutdown).parameters:

        def leave(self: Any, death_sig: Any = None, is_restart: bool = False) -> None:
            shutdown(self, *([] if death_sig is None else [death_sig]), is_restart=True)

        LocalElasticAgent._shutdown = leave


def main(arguments: Sequence[str] | None = None) -> None:
    from torch.distributed import run

    patient(grace())
    run.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
