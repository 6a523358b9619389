from tests.recording.deployment import Traffic


def test_lengths_may_be_drawn_from_pairs_instead() -> None:
    pairs = ((100, 7), (2000, 1))
    drawn = Traffic(2.0, pairs=pairs, seed=5).draw(500)
    assert {(r.prompt_tokens, r.output_tokens) for r in drawn} == set(pairs)
    # of about 1,000 requests half are expected; three standard deviations are 48
    assert abs(sum(r.prompt_tokens == 100 for r in drawn) - len(drawn) / 2) < 60


def test_pairs_leave_arrivals_as_they_are_in_number() -> None:
    plain, paired = (len(Traffic(2.0, pairs=p, seed=5).draw(500)) for p in ((), ((1, 1),)))
    # Poisson with mean 1,000
    assert abs(plain - 1000) < 130
    assert abs(paired - 1000) < 130
