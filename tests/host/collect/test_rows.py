import pytest

from rocetap.collect.outcomes import Outcome, Qualification
from rocetap.collect.rows import pfc_row, sequence_row
from rocetap.collect.rules import Rule
from rocetap.collect.schema import EPOCH_COLUMNS, PFC_COLUMNS, REPORT_COLUMNS

ORIGIN = {"session_id": 3, "domain": 4, "exporter": "probe"}


def _epoch(**columns):
    stored = dict.fromkeys((*REPORT_COLUMNS, *EPOCH_COLUMNS, "outcome"), 0)
    return stored | {"source": bytes(16), "destination": bytes(16), "reports": 1} | ORIGIN | columns


@pytest.mark.parametrize(("vid", "cvid", "keys"), [
    (0, 0, None), (5, 0, (5, 0)), (0, 6, (0, 6)), (5, 6, (5, 6))])
def test_vlan_keys_only_for_connections_on_a_vlan(vid, cvid, keys):
    row = sequence_row(_epoch(vid=vid, cvid=cvid))
    found = (row["dot1qVlanId"], row["dot1qCustomerVlanId"]) if "dot1qVlanId" in row else None
    assert found == keys


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes_by_name_and_a_reason_only_for_invalid_ones(outcome):
    row = sequence_row(_epoch(outcome=outcome, rule=Rule.AFTER_FINAL))
    assert row["outcome"] == outcome.name
    assert row.get("invalidReason") == ("after_final" if outcome is Outcome.invalid else None)


def test_qualifications_by_name():
    every = Qualification.firstReportMissing | Qualification.reportGap
    row = sequence_row(_epoch(qualifications=int(every)))
    assert row["qualifications"] == ["firstReportMissing", "reportGap"]


def test_no_name_claims_what_the_counters_do_not_show():
    """Collectors must not label positions lost, PSNs retransmitted or fills reordered."""
    row = sequence_row(_epoch()) | pfc_row(dict.fromkeys(PFC_COLUMNS, 0) | ORIGIN)
    names = " ".join(row).lower()
    assert not any(word in names for word in ("lost", "loss", "retrans", "reorder"))
