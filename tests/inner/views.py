"""Inner names of `views`, what commands, tools and pages show."""

from holdfast.views import minimap
from holdfast.views.comparison import DiffQuery, diff_document
from holdfast.views.journal import journal_of
from holdfast.views.lanes import laid_out
from holdfast.views.langgraph_interrupts import Waiting, waiting
from holdfast.views.log import LogQuery, log_document
from holdfast.views.references import short_id
from holdfast.views.showing import Showing
from holdfast.views.waiting import all_waiting
