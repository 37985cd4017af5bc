"""Inner names of `workspace`; needs pathspec."""

from holdfast.workspace import _descriptors as descriptors
from holdfast.workspace import _seal as seal
from holdfast.workspace._descriptors import FOLDER
from holdfast.workspace._disk import Disk
from holdfast.workspace._intent import INTENT, INTENTS, UNFINISHED, Intent, Step
from holdfast.workspace._intent import encode as encode_intent
from holdfast.workspace._patterns import bounded, matcher
from holdfast.workspace._plan import FileChange
from holdfast.workspace._rules import recorded_rules
from holdfast.workspace._seal import make_secret, sealed
