"""Inner names of `keys`; needs cryptography."""

from holdfast.keys import _ciphers as ciphers
from holdfast.keys._caller_key import FORMS
from holdfast.keys._ciphers import NONCE, OVERHEAD, ContentCipher, ContentKey, nonce_of
from holdfast.keys._moves import CODE, MoveProofs
from holdfast.keys._records import SEGMENT_NUMBERS
