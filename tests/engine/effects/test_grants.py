"""A grant that was used stays used when threads of its family go."""


def test_a_deleted_thread_takes_no_grants_over(store):
    thread = store.thread("m")
    thread.save({"n": 1})
    for name in ("a", "z"):
        thread.fork(name)
    assert thread.consume("approval:42")
    store.thread("a").delete()

    thread.delete()

    assert not store.thread("z").consume("approval:42")
    assert store.thread("z").load() == {"n": 1}


def test_the_last_thread_of_a_family_goes_with_its_grants(store):
    thread = store.thread("m")
    thread.save({"n": 1})
    assert thread.consume("approval:42")

    thread.delete()

    assert list(store.threads()) == []
