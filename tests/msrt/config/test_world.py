import pytest

from msmigrate.problems import UserError
from msrt.config.world import world_of

ALONE = {"MS_WORKER_NUM": "1", "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "MS_SCHED_HOST": "127.0.0.1"}


@pytest.mark.parametrize("environment", [{}, {"MS_WORKER_NUM": "1"}, ALONE, {"MS_ROLE": "MS_WORKER"}])
def test_one_rank(environment: dict[str, str]) -> None:
    assert world_of(environment) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"MS_WORKER_NUM": "2"}, "MS_WORKER_NUM in the environment is 2; training on several ranks is not there yet"),
        ({"MS_WORKER_NUM": "two"}, "MS_WORKER_NUM in the environment is 'two'"),
        ({"MS_WORKER_NUM": "0"}, "MS_WORKER_NUM in the environment is '0'"),
        ({"MS_WORKER_NUM": "²"}, "MS_WORKER_NUM in the environment is '²'"),
        ({"MS_ROLE": "MS_SCHED"}, "MS_ROLE in the environment is 'MS_SCHED'; only an MS_WORKER trains"),
        ({"MS_NODE_ID": "3"}, "MS_NODE_ID in the environment is 3; with MS_WORKER_NUM 1 it must be from 0 to 0"),
        ({"MS_NODE_ID": "-1"}, "MS_NODE_ID in the environment is '-1'"),
    ],
)
def test_what_a_launcher_would_not_set(changes: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        world_of({**ALONE, **changes})


def test_a_rank_without_a_world() -> None:
    with pytest.raises(UserError, match="MS_NODE_ID in the environment is '3', but MS_WORKER_NUM is not set"):
        world_of({"MS_NODE_ID": "3"})
