"""Inner names of `_values`, pure values and functions."""

from holdfast._values import file_listing
from holdfast._values.codec import _LOADS as LOADS
from holdfast._values.codec import MARKER, decode, encode, flattened
from holdfast._values.file_diff import FileChange
from holdfast._values.file_listing import (
    MAGIC,
    About,
    Below,
    Level,
    Listing,
    extended,
    find_in,
    fold,
    fold_near,
    replaced,
    tree_near,
)
from holdfast._values.files import OWN_FOLDER, changed, compare, differences
from holdfast._values.list_tail import parts_backwards
from holdfast._values.list_tail import shortened as shortened_list
from holdfast._values.manifest import decode_manifest, value_of
from holdfast._values.merge import ElementId, Merged, Sides, three_way
from holdfast._values.moment import Ago, Clock, Until
from holdfast._values.paths import find_at, parse_path
from holdfast._values.records import PIN, PLAIN, checksum
from holdfast._values.reference import (
    Back,
    Labelled,
    Moved,
    Named,
    Parsed,
    Step,
    Tagged,
    Upstream,
    parse,
)
from holdfast._values.rope import (
    BLOCK,
    FINE_ELEMENTS,
    MOST_RUNS,
    Body,
    Rope,
    append,
    chain_of,
    numbers,
    splice,
    write,
)
from holdfast._values.runs import count_segments, last_runs
from holdfast._values.segment_use import SegmentUse
from holdfast._values.shortening import ELLIPSIS, shortened
from holdfast._values.stored_file import StoredFile
from holdfast._values.typed import convert
from holdfast.diff import same
