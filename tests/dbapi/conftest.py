"""A table behind a server for tools that connect by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.conftest import Far, far
from tests.people import publish


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("dbapi")
        patch.setenv("SULQ_STATE", str(path / "state"))
        database = publish(name="people")
        database.grant("analyst", 60)
        with far(path, people=database) as found:
            yield found
