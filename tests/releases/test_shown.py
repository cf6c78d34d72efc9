"""What the dashboard's page says of a worker that cannot take a version over."""

import time

import msgspec
from playwright.sync_api import Browser, expect

from streams.view.status import WorkerStatus
from tests.dashboard.seeding import SPEAKS_S
from tests.dashboard.serving import served, settings_for
from tests.waiting import PATIENCE_S

TROUBLE = "keeps b727516c3f87: cannot load 32f43978b451: model.safetensors was changed (try 6, next in 14 s)"


def test_the_page_says_that_a_worker_cannot_load_a_version_and_why_and_when_it_is_over(
    browser: Browser, redis_url: str
):
    def say(message: str):
        status = WorkerStatus(time.time() + SPEAKS_S, ["embed"], "b727516c3f87", message=message)
        running.call(lambda view: view.put_worker("vm-1", status))
        running.call(lambda view: view.put_worker("vm-2", msgspec.structs.replace(status, message="")))

    with served(settings_for(redis_url)) as running:
        say(TROUBLE)
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        page.goto(running.url)
        tile = page.locator("#workers-on")
        expect(tile).to_have_text("1 worker has trouble")
        expect(tile).to_have_attribute("title", f"vm-1 {TROUBLE}")
        page.locator("details.pipe summary", has_text="Workers").click()
        expect(page.locator("#workers li").first).to_contain_text(TROUBLE)
        say("")
        expect(tile).to_have_text("encoder b727516c3f87")
        page.close()
