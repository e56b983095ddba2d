"""Every layout of npu-smi that this package reads, in one place. Pure: text in, figures out.

No function here raises for any text. What cannot be read is absent and named in
``problems``; a value is never guessed.
"""

from npu_fallback_exporter.npu_smi.diagnosis import Diagnosis, FailureReason, diagnose
from npu_fallback_exporter.npu_smi.id_map import parse_id_map
from npu_fallback_exporter.npu_smi.info_table import parse_info
from npu_fallback_exporter.npu_smi.key_values import (
    parse_card_list,
    parse_common,
    parse_fields,
    parse_usages,
)
from npu_fallback_exporter.npu_smi.other_tables import (
    parse_processes,
    parse_version,
    parse_virtual_npus,
)
from npu_fallback_exporter.npu_smi.watch import parse_watch

__all__ = [
    "Diagnosis",
    "FailureReason",
    "diagnose",
    "parse_card_list",
    "parse_common",
    "parse_fields",
    "parse_id_map",
    "parse_info",
    "parse_processes",
    "parse_usages",
    "parse_version",
    "parse_virtual_npus",
    "parse_watch",
]
