"""Inner names of archives."""

from holdfast.archive._contents import FamilyLine, Heading, fingerprint, living, seqs_of
from holdfast.archive._frames import VERSION, FrameReader, FrameWriter, framed
from holdfast.archive._records import FORMS, Forms, family_of
