"""Home pages are found with a list and without, and one that is in no list by both together."""

import pytest


@pytest.fixture(scope="module")
def home(example):
    return example("home_pages")


@pytest.mark.lengthy
def test_what_no_list_holds_is_found_by_extension_and_then_by_rappor(home, capsys):
    home.main()
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    # A page of 15,000 devices is 18 standard errors of the extension's last step away from none,
    # and further at steps before; a page that nobody has is shown with a chance of 0.05.
    (row,) = [line for line in told.splitlines() if line.startswith(home.NEW + " ")][:1]
    first, *others = row.split("±")[0], *row.split("±")[1:]
    assert "not found" in first
    assert len(others) == 2
    found = [
        int(line.split("pages")[0].split()[-1]) for line in told.splitlines() if " pages, " in line
    ]
    assert min(found) >= 5


def test_each_device_has_a_page_and_a_fifth_one_of_its_own(home):
    values = home.home_pages(home.addresses()[:250])
    assert values.size == home.DEVICES
    own = [page for page in values.tolist() if page.startswith("~")]
    assert len(own) == len(set(own))
    assert 0.19 < len(own) / home.DEVICES < 0.21  # the seed is fixed
    assert not set(home.addresses()) & {home.NEW, *own}
