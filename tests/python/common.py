"""What the tests of the package share."""


def raises(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"expected {kind.__name__}")
