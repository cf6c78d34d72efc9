"""What the bundled encoders were measured to do, measured again on the research sets (CRISIS_DATA).

The static one, `flood`, whole; the default, which reads in context and a twentieth as fast, on small samples.
"""

import numpy as np
import pytest

from models.encoders.load import load_encoder
from training import files

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def root():
    try:
        return files.data_dir()
    except files.DataError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def flood():
    return load_encoder("flood")


@pytest.fixture(scope="module")
def reader():
    return load_encoder("reader")


def test_sentences_find_their_translations_in_the_papers_languages(root):
    from training.evaluate.matching import PAPER_LANGUAGES, flores_matching, summary

    found = summary(flores_matching(load_encoder("flood"), root, langs=PAPER_LANGUAGES))
    assert found["languages_paper"] == 50
    assert found["mean_paper"] >= 0.80
    assert found["mean_best_15"] >= 0.92
    assert found["lowest_paper"] >= 0.45


def test_relatedness_is_above_lexical_overlap_on_the_whole(root):
    from training.evaluate.relatedness import semrel, summary

    found = summary(semrel(load_encoder("flood"), root))
    assert found["mean"] > found["mean_overlap"]


def test_needs_are_ranked_over_five_times_better_than_chance_as_sent_and_in_translation(root):
    from training.evaluate.needs import need_precision, summary

    found = summary(need_precision(load_encoder("flood"), root))
    assert found["originals"] >= 0.277 and found["translations"] >= 0.367  # measured .285 and .374
    assert found["originals"] > 5 * found["chance"]


def test_noised_english_is_found_among_hard_negatives_as_measured(root):
    from training.files import read_aligned
    from training.noise.measure import Config, noise_figures

    sentences = read_aligned(root / "flores200", ["en"])["en"][:200]
    found = noise_figures(load_encoder("flood"), sentences, Config(kinds=("mix_all", "leet"), seeds=1))
    assert np.mean(found["mix_all"]["cosine_distance"]) <= 0.05 and np.mean(found["leet"]["cosine_distance"]) <= 0.025


def test_the_halves_share_no_message(root):
    from training.evaluate.needs import need_messages

    train, held_out = ({m["id"] for m in need_messages(root, half)} for half in (True, False))
    assert not train & held_out
    assert np.isclose(len(train) / (len(train) + len(held_out)), 0.5, atol=0.03)


# What was said and what was not, in nearly the same words; and the same twice more in another language. An encoder that
# reads finds the right one of the two there, however near to each other it puts them.
DENIED = [
    ("The bridge is safe", "The bridge is not safe", "Le pont est sûr", "Le pont n'est pas sûr"),
    (
        "There is water in the camp",
        "There is no water in the camp",
        "Hay agua en el campamento",
        "No hay agua en el campamento",
    ),
    ("The hospital has medicine", "The hospital has no medicine", "Hastanede ilaç var", "Hastanede ilaç yok"),
    ("The road is open", "The road is not open", "Дорога открыта", "Дорога не открыта"),
    ("They have been rescued", "They have not been rescued", "Wameokolewa", "Hawajaokolewa"),
    ("The children have eaten", "The children have not eaten", "Timoun yo manje", "Timoun yo pa manje"),
    ("The doctor came", "The doctor did not come", "डॉक्टर आया", "डॉक्टर नहीं आया"),
    ("We have electricity", "We have no electricity", "عندنا كهرباء", "ليس عندنا كهرباء"),
    ("The house is damaged", "The house is not damaged", "Das Haus ist beschädigt", "Das Haus ist nicht beschädigt"),
    ("I can walk", "I cannot walk", "Eu consigo andar", "Eu não consigo andar"),
    ("The dam will hold", "The dam will not hold", "大坝会撑住", "大坝不会撑住"),
    ("She needs help", "She does not need help", "Lei ha bisogno di aiuto", "Lei non ha bisogno di aiuto"),
]
TURNED = [
    ("The dog bit the man", "The man bit the dog", "Le chien a mordu l'homme", "L'homme a mordu le chien"),
    (
        "The mother looks for her daughter",
        "The daughter looks for her mother",
        "La madre busca a su hija",
        "La hija busca a su madre",
    ),
    (
        "The doctor called the driver",
        "The driver called the doctor",
        "Der Arzt rief den Fahrer an",
        "Der Fahrer rief den Arzt an",
    ),
    (
        "The police thanked the crowd",
        "The crowd thanked the police",
        "Полиция поблагодарила толпу",
        "Толпа поблагодарила полицию",
    ),
    (
        "The children found the teacher",
        "The teacher found the children",
        "Watoto walimpata mwalimu",
        "Mwalimu aliwapata watoto",
    ),
    (
        "The son called his father",
        "The father called his son",
        "Il figlio ha chiamato il padre",
        "Il padre ha chiamato il figlio",
    ),
    (
        "Water came before the fire",
        "Fire came before the water",
        "A água chegou antes do fogo",
        "O fogo chegou antes da água",
    ),
    ("The woman helped the boy", "The boy helped the woman", "那个女人帮助了那个男孩", "那个男孩帮助了那个女人"),
    (
        "From Port-au-Prince to Jacmel",
        "From Jacmel to Port-au-Prince",
        "De Port-au-Prince à Jacmel",
        "De Jacmel à Port-au-Prince",
    ),
    ("The nurse asked the soldier", "The soldier asked the nurse", "Hemşire askere sordu", "Asker hemşireye sordu"),
]


def told_apart(encoder, rows):
    """(n,) how much nearer the two sides are to their own translations than to each other's; their mean cosine."""
    vectors = encoder.encode([text for row in rows for text in row]).reshape(len(rows), 4, -1)
    cosine = np.einsum("nid,njd->nij", vectors, vectors)
    nearer = cosine[:, 0, 2] + cosine[:, 1, 3] - cosine[:, 0, 3] - cosine[:, 1, 2]
    return nearer, float(cosine[:, 0, 1].mean() + cosine[:, 2, 3].mean()) / 2


def test_the_default_reads_word_order_which_a_sum_of_words_cannot(reader, flood):
    nearer, same = told_apart(reader, TURNED)
    assert (nearer > 0).mean() >= 0.9
    blind, all_the_same = told_apart(flood, TURNED)
    assert nearer.mean() > 5 * np.abs(blind).mean() and same < all_the_same


def test_the_default_moves_a_sentence_and_its_denial_further_apart_than_a_sum_of_words_does(reader, flood):
    nearer, same = told_apart(reader, DENIED)
    assert (nearer > 0).mean() >= 0.9
    by_words, near = told_apart(flood, DENIED)
    assert nearer.mean() > 2 * by_words.mean() and same < near


def test_the_default_finds_translations_in_thin_languages_where_the_static_one_does_not(reader, flood, root):
    """The lowest of issue 11's table, .80, in each of them; among 100 sentences, the first of FLORES devtest."""
    from training.evaluate.matching import aligned_set, matching_accuracy

    thin, texts = ("am", "ckb", "ht", "my", "sw"), aligned_set(root, "flores200 devtest")

    def found(encoder):
        vectors = {lang: encoder.encode(texts[lang][:100]) for lang in ("en", "uk", *thin)}
        return {lang: float(np.mean(matching_accuracy(vectors["en"], vectors[lang]))) for lang in ("uk", *thin)}

    by_reader, by_flood = found(reader), found(flood)
    assert all(by_reader[lang] >= 0.80 and by_reader[lang] > by_flood[lang] for lang in thin), (by_reader, by_flood)
    assert by_reader["uk"] >= 0.95


def test_the_default_ranks_relatedness_above_lexical_overlap_in_large_languages(reader, root):
    """60 pairs a language; the mean that issue 11 asks of 13 languages, .63, is reached in these."""
    from training.evaluate.relatedness import relatedness, scored_pairs

    rows = scored_pairs(root, "SemRel2024 dev")
    by_lang = relatedness(reader, {lang: rows[lang][:60] for lang in ("ar", "en", "es", "hi")}, seed=1)
    assert all(f["spearman"] > f["overlap"] for f in by_lang.values()), by_lang
    assert np.mean([f["spearman"] for f in by_lang.values()]) >= 0.63
