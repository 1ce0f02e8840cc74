"""What a browser seals, the shuffler carries and the analyser counts."""

import os
import shutil

import pytest
from device_sites import device_site
from shuffle_rooms import Rooms, counted

from discreet.local import DirectResponse
from discreet.shuffle import Arrival

SEND = """async ({ parameters, key, values }) => {
  const point = Uint8Array.from(atob(key.replace(/-/g, "+").replace(/_/g, "/") + "="),
    (letter) => letter.charCodeAt(0));
  const answer = await local.simulate(parameters);
  const hex = (all) => [...all].map((one) => one.toString(16).padStart(2, "0")).join("");
  return Promise.all(values.map(async (value) => hex(await local.envelope(point, answer(value)))));
}"""


@pytest.mark.needs("chromium")
@pytest.mark.lengthy
def test_a_browser_s_envelopes_are_carried_and_counted(tmp_path):
    from playwright.sync_api import sync_playwright

    people = 40
    law = DirectResponse(domain=4, epsilon=8)
    rooms = Rooms.make(tmp_path, senders=people, minimum=people, law=law)
    asked = {
        "parameters": rooms.parameters.document,
        "key": rooms.key.text,
        "values": [2] * people,
    }
    with device_site() as site, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        site.use("discreet-local.min.js")
        page = chromium.new_page()
        page.goto(site.address)
        page.evaluate("() => local.openCollection.length")
        envelopes = [bytes.fromhex(one) for one in page.evaluate(SEND, asked)]
        chromium.close()
    with rooms.shuffler() as shuffler:
        arrivals = list(map(Arrival, rooms.tokens, envelopes))
        assert counted(shuffler.accept(arrivals)) == {"waiting": people}
        shuffler.release()
    with rooms.open_all() as analyser:
        assert [one.accepted for one in analyser.opened] == [people]
        # A lie has chance 1e-3 at this epsilon: twenty of forty, never.
        assert analyser.estimate().counts[2] > people / 2
