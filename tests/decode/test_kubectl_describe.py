"""Event tables, pod tables, descriptions and pasted messages, as kubectl of all ages prints."""

from __future__ import annotations

import orjson
import pytest

from tests.decode.session import Decoded, decoded
from tracekit.decode.kubectl_json import KubectlTextDecoder

FAILED = "0/3 nodes are available: 3 Insufficient cpu."


def read(text: str) -> Decoded:
    return decoded(KubectlTextDecoder(), text.encode())


# One event each, as the printers of these versions lay it out.
# Source: kubectl describe.go DescribeEvents, printers/internalversion printEvent, events.go.
ROWS = {
    "describe": f"  Warning  FailedScheduling  2m (x4 over 9m)  default-scheduler  {FAILED}",
    "describe, one blank": f"Warning FailedScheduling 2m (x4 over 9m) default-scheduler {FAILED}",
    "describe to 1.7": "  9m\t\t2m\t\t4\tdefault-scheduler\t\t\tWarning\t\tFailedScheduling\t"
    + FAILED,
    "describe to 1.5": "  9m\t2m\t4\t{default-scheduler }\t\t\tWarning\t\tFailedScheduling\t"
    + FAILED,
    "get to 1.13": (
        "LASTSEEN   FIRSTSEEN   COUNT     NAME                     KIND      SUBOBJECT   TYPE      "
        "REASON             SOURCE              MESSAGE\n"
        "2m         9m          4         pod-a.15b5d51b1f9fcd51   Pod                   Warning   "
        f"FailedScheduling   default-scheduler   {FAILED}"
    ),
    "get, wide": (
        "NAMESPACE   LAST SEEN   TYPE      REASON             OBJECT      SUBOBJECT   "
        "SOURCE              MESSAGE                                        "
        "FIRST SEEN   COUNT   NAME\n"
        "ns-a        2m          Warning   FailedScheduling   pod/pod-a               "
        f"default-scheduler   {FAILED}   9m           4       pod-a.177b8611aaaaaaaa"
    ),
    "events": (
        "LAST SEEN            TYPE      REASON             OBJECT      MESSAGE\n"
        f"2m (x4 over 9m)      Warning   FailedScheduling   Pod/pod-a   {FAILED}"
    ),
}


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
def test_row_of_any_age(text: str) -> None:
    assert KubectlTextDecoder().recognises(text.encode())
    (row,) = read(text).tables["event_texts"]
    told = ("reason", "type", "message", "count", "first_seen", "last_seen", "kind")
    assert [row[c] for c in told] == ["FailedScheduling", "Warning", FAILED, 4, "9m", "2m", "Pod"]
    if "OBJECT" in text or "NAME" in text:
        assert row["name"] == "pod-a"
    if "SOURCE" in text or "default-scheduler" in text:
        assert row["source"] == "default-scheduler"


def test_row_without_age_or_source() -> None:
    found = read(
        f"Warning  FailedScheduling  {FAILED}\n  Warning  FailedScheduling  <unknown>  x  m\n"
    )
    assert found.rows("event_texts", "message", "last_seen", "count", "source") == [
        (FAILED, None, None, None),
        ("m", "<unknown>", 1, "x"),
    ]


DESCRIBED = f"""Name:             web-0
Namespace:        shop
Priority:         1000
Node:             <none>
Labels:           app=web
                  tier=front
Status:           Pending
NominatedNodeName:  node-9
Containers:
  nginx:
    Image:      nginx
    State:          Waiting
      Reason:       ContainerCreating
Conditions:
  Type           Status
  PodScheduled   False
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  4m    default-scheduler  {FAILED}

Name:         web-1
Namespace:    shop
Node:         node-1/10.0.0.1
Status:       Failed
Reason:       Evicted
Message:      The node was low on resource: memory.
Events:       <none>
"""


def test_description_names_the_object_of_its_events() -> None:
    found = read(DESCRIBED)
    assert found.rows("event_texts", "form", "namespace", "name", "reason", "node") == [
        ("event", "shop", "web-0", "FailedScheduling", None),
        ("status", "shop", "web-1", "Evicted", "node-1"),
    ]
    pods = [orjson.loads(row["value"]) for row in found.tables["objects"]]
    assert [pod["status"] for pod in pods] == [
        {"phase": "Pending", "nominatedNodeName": "node-9"},
        {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "The node was low on resource: memory.",
        },
    ]
    assert [pod.get("spec") for pod in pods] == [{"priority": 1000}, {"nodeName": "node-1"}]
    assert found.notes == []


def test_pod_table_keeps_the_last_row_of_a_pod() -> None:
    header = (
        "NAMESPACE   NAME    READY   STATUS      RESTARTS       AGE   IP       NODE     "
        "NOMINATED NODE\n"
    )
    found = read(
        header
        + "shop        web-0   0/1     Pending     0              3s    <none>   <none>   node-2\n"
        + "shop        web-0   1/1     Running     1 (2s ago)     9s    1.2.3.4  node-2   <none>\n"
    )
    (pod,) = found.tables["objects"]
    assert orjson.loads(pod["value"])["spec"] == {"nodeName": "node-2"}
    assert found.rows("event_texts", "reason", "node", "related") == [
        ("Pending", None, "node-2"),
        ("Running", "node-2", None),
    ]


def test_session_tells_namespace_and_pod() -> None:
    found = read(
        "$ kubectl -n shop get events\n"
        "LAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"
        f"2m          Warning   FailedScheduling   pod/pod-a   {FAILED}\n"
        "$ kubectl get pod web-1 --namespace=cart -o json | jq .status.conditions[0]\n"
        '{\n  "type": "PodScheduled",\n  "status": "False",\n  "reason": "Unschedulable"\n}\n'
    )
    assert found.rows("event_texts", "form", "namespace", "name") == [
        ("event", "shop", "pod-a"),
        ("condition", "cart", "web-1"),
    ]


def test_only_one_scheduled_row_names_the_pod_of_a_table() -> None:
    found = read(
        f"  Warning  FailedScheduling  9s  default-scheduler  {FAILED}\n"
        "  Normal   Scheduled         5s  default-scheduler  Successfully assigned ns-a/p to n1\n"
    )
    assert found.rows("event_texts", "namespace", "name", "node") == [
        ("ns-a", "p", None),
        ("ns-a", "p", "n1"),
    ]


@pytest.mark.parametrize("mark", ["> ", "│ "])
def test_quoted_and_wrapped_rows_go_on(mark: str) -> None:
    found = read(
        f"{mark}  Warning  FailedScheduling  10s  x-scheduler  0/6 nodes are available: 3 no\n"
        f"{mark}de(s) were unschedulable, 3 Insufficient cpu. preemption: 0/6 nodes are avail\n"
        f"{mark}able: 6 Preemption is not helpful for scheduling.\n"
    )
    (row,) = found.tables["event_texts"]
    assert row["message"].count("\n") == 2
    assert row["message"].endswith("scheduling.")


def test_unknown_words_are_told_once_a_stretch() -> None:
    found = read(f"What is this?\nAnd this?\n\n{FAILED}\n\nThanks!\n")
    assert found.notes == [("TEXT_UNKNOWN", 1), ("TEXT_UNKNOWN", 6)]
    assert found.rows("event_texts", "form", "message") == [("message", FAILED)]


@pytest.mark.parametrize(
    "head",
    [
        f"I0101 00:00:00.000000       1 a.go:1] {FAILED}\n",
        f'time="2024-04-22T09:36:00Z" level=debug msg=x\n  Warning  Failed  2m  x  {FAILED}\n',
        f"2024-01-01T00:00:00Z stderr F {FAILED}\n",
        "nothing to see\n",
    ],
)
def test_logs_are_left_to_the_log_decoders(head: str) -> None:
    assert not KubectlTextDecoder().recognises(head.encode())
