"""Imports an archive into a store and kills itself when so much of it is done.

usage: import_archive.py ARCHIVE STORE DONE
"""

import os
import signal
import sys

import holdfast

source, target, enough = sys.argv[1], sys.argv[2], int(sys.argv[3])


def stop(done, of):
    if done >= enough:
        os.kill(os.getpid(), signal.SIGKILL)


with holdfast.open(target) as store:
    store.import_archive(source, progress=stop)
