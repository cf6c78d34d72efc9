"""The sets under CRISIS_DATA that jobs read by name: what each holds, by whose leave, and where it can be had.

python -m training.data        # this table, and which of the sets are here

Files are UTF-8 and gzipped: `.jsonl.gz` has an object to a line, `.tsv.gz` a header and nothing quoted, `xx.txt.gz` one
sentence to a line, the same line in every language and "en" among them, empty where there is no translation. Languages
are ISO 639-1. What sets come as is other files than these: of a set had from elsewhere, write the columns named here.
Terms are as their authors state them; where weights may be handed on is said in `training.data`.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["DATA_SETS", "DataSet"]


class DataSet(Struct, frozen=True, kw_only=True):
    """One folder under CRISIS_DATA."""

    holds: str
    files: tuple[str, ...]  # patterns, the first with the rows
    columns: str  # that jobs read
    sources: tuple[str, ...] = ()  # of training.data.SOURCES, which has their licences
    licence: str = ""  # of a set without such sources
    learnt: str = ""  # by which jobs
    judges: str = ""  # in which jobs
    origin: str  # address; citation


TWEETS, MESSAGES, STREAM = ("tweets.jsonl.gz",), ("messages.jsonl.gz",), ("stream.jsonl.gz",)
PAIRS = "pairs of training.distill, robust, mlm, shorten, tokenizer, vocabulary"
READ = "posts that were read: training.head, training.adapt"
CLASSES = "training.evaluate measures=classes"
MATCHING = "training.evaluate measures=matching"
NOISE = "training.noise.measure, training.evaluate measures=noise"
ORDINARY = "ordinary posts: training.calibrate, training.evaluate alerts"
ALERTS = "posts that were read: training.evaluate alerts"
CRISISNLP = "CrisisNLP's: humanitarian research alone, texts confidential, tweet ids may be shared"
MIT_TWEETS = "MIT; the texts fall under Twitter's content terms"
CRISISLEX = "https://github.com/sajao/CrisisLex; Olteanu, "
DEBIAN = "https://www.debian.org: Debian 12 (bookworm), main, catalogues and help of"
TERMS = ("tico19-fb-terms", "tico19-google-terms", "osm-presets", "cldr-territories")

DATA_SETS = {
    # parallel texts to learn from
    "tatoeba-train": DataSet(
        holds="short everyday sentences, English and 56 languages",
        files=("*.tsv.gz",),
        columns="en, xx; a file for each language",
        sources=("tatoeba-train",),
        learnt=f"{PAIRS}; what asks for nothing: training.head, training.calibrate; "
        "training.places, place_words, function_words",
        judges=ORDINARY,
        origin="https://github.com/Helsinki-NLP/OPUS-MT-testsets; Tiedemann 2020, WMT",
    ),
    "software-l10n": DataSet(
        holds="strings of Android, Mozilla, MediaWiki, OpenStreetMap and others, English and 64 languages",
        files=("*.txt.gz",),
        columns="lines",
        sources=("software-l10n",),
        learnt=PAIRS,
        origin="https://github.com/LineageOS, https://github.com/mozilla-l10n, https://github.com/wikimedia, "
        "https://github.com/openstreetmap/openstreetmap-website and others",
    ),
    "humanitarian-l10n": DataSet(
        holds="strings of programs for aid, warnings and health in 65 languages",
        files=("humanitarian_l10n.tsv.gz",),
        columns="lang, en, xx",
        sources=("humanitarian-l10n",),
        learnt=PAIRS,
        origin="https://github.com/sahana/eden, https://github.com/ushahidi/platform-client-mzima, "
        "https://github.com/hotosm/tasking-manager, https://github.com/getodk/collect and ten others",
    ),
    "misc-parallel": DataSet(
        holds="questions, phrases of doctors and patients, reviews: ha, rw, sw, ht, id",
        files=("misc_parallel.tsv.gz",),
        columns="source, split, lang, en, xx",
        sources=("afriqa", "cmu-haitian-medical", "nusax"),
        learnt=PAIRS,
        origin="https://github.com/masakhane-io/afriqa, Ogundepo et al. 2023; CMU's Haitian data 2010, by "
        "https://github.com/akhilvasvani/Artifical-Haitian-Creole-Langauge-Database; "
        "https://github.com/IndoNLP/nusax, Winata et al. 2023",
    ),
    "indic-wiki-4ref": DataSet(
        holds="Wikipedia in bn, hi, ta, te, ur with four English translations",
        files=("indic_wiki_4ref.tsv.gz",),
        columns="lang, xx, en1 to en4",
        sources=("indic-wiki-4ref",),
        learnt=PAIRS,
        origin="https://github.com/joshua-decoder/indian-parallel-corpora; Post, Callison-Burch, Osborne 2012, WMT",
    ),
    "tico19": DataSet(
        holds="COVID-19 texts, English and 26 languages",
        files=("*.txt.gz", "meta.tsv.gz"),
        columns="lines; split (dev, test)",
        sources=("tico19-dev",),
        learnt=f"{PAIRS} (dev)",
        judges=f"{MATCHING} (test)",
        origin="https://github.com/tico-19/tico-19.github.io; Anastasopoulos et al. 2020, NLP-COVID19",
    ),
    "lexicons": DataSet(
        holds="terms of the pandemic, of places on maps, names of territories, 64 languages",
        files=("lexicons.tsv.gz",),
        columns="source, lang, en, xx",
        sources=TERMS,
        learnt=PAIRS,
        origin="https://github.com/tico-19/tico-19.github.io, https://github.com/openstreetmap/id-tagging-schema, "
        "https://github.com/unicode-org/cldr-json",
    ),
    "emoji-cldr": DataSet(
        holds="names and keywords of emoji",
        files=("emoji_names.tsv.gz",),
        columns="lang, emoji, name, keywords",
        sources=("emoji-cldr",),
        learnt=PAIRS,
        origin="https://github.com/unicode-org/cldr-json; Unicode CLDR",
    ),
    "debian-games": DataSet(
        holds="dialogue, stories and rules of games in 60 languages",
        files=("debian_games.tsv.gz",),
        columns="source, lang, en, xx",
        sources=("debian-games",),
        learnt=PAIRS,
        origin=f"{DEBIAN} 65 packages such as wesnoth, gcompris-qt, widelands, freeciv",
    ),
    "debian-docs": DataSet(
        holds="manuals and help pages",
        files=("debian_docs.tsv.gz",),
        columns="source, lang, en, xx",
        sources=("debian-docs",),
        learnt=PAIRS,
        origin=f"{DEBIAN} 86 packages such as libreoffice-help, gnome-user-docs, installation-guide",
    ),
    "debian-apps": DataSet(
        holds="sentences of interfaces",
        files=("debian_apps.tsv.gz",),
        columns="source, lang, en, xx",
        sources=("debian-apps",),
        learnt=PAIRS,
        origin=f"{DEBIAN} 186 packages such as libreoffice, chromium, mediawiki, firefox",
    ),
    "freedict": DataSet(
        holds="words and short phrases of 50 dictionaries, 29 languages",
        files=("freedict.tsv.gz",),
        columns="source, lang, en, xx",
        sources=("freedict",),
        learnt=PAIRS,
        origin="https://freedict.org; Debian 12, packages dict-freedict-*",
    ),
    # parallel texts that only judge
    "flores200": DataSet(
        holds="sentences of Wikimedia in 63 languages: devtest, and 510 of dev",
        files=("*.txt.gz", "meta.tsv.gz"),
        columns="lines; split (devtest, dev(sib))",
        licence="CC BY-SA 4.0",
        judges=f"{MATCHING}; {NOISE}; training.measure_places; {ORDINARY}",
        origin="https://github.com/Helsinki-NLP/OPUS-MT-testsets, https://github.com/dadelani/sib-200; NLLB Team 2022, "
        "Goyal et al. 2022, Adelani et al. 2024",
    ),
    "ntrex128": DataSet(
        holds="news in 64 languages, translated by professionals",
        files=("*.txt.gz",),
        columns="lines",
        licence="CC BY-SA 4.0",
        judges=f"{MATCHING}, sizes; {ORDINARY}",
        origin="https://github.com/MicrosoftTranslator/NTREX; Federmann, Kocmi, Xin 2022, SUMEval",
    ),
    # pairs of texts that people scored
    "semrel2024": DataSet(
        holds="pairs with people's relatedness in 14 languages",
        files=("semrel2024.tsv.gz",),
        columns="lang, split (train, dev), sentence1, sentence2, score_0_1",
        licence="none stated, published for research",
        learnt="training.whiten, training.semrel",
        judges="training.evaluate measures=relatedness",
        origin="https://github.com/semantic-textual-relatedness/Semantic_Relatedness_SemEval2024; "
        "Ousidhoum et al. 2024",
    ),
    "stsb-multi": DataSet(
        holds="pairs with people's similarity in 11 languages, all but English by machine",
        files=("stsb_multi.tsv.gz",),
        columns="lang, split (train, test), sentence1, sentence2, score_0_5",
        licence="scores CC BY-SA 4.0, texts by genre",
        learnt="training.whiten pairs=stsb",
        judges="training.evaluate measures=relatedness, backends",
        origin="https://github.com/PhilipMay/stsb-multi-mt; Cer et al. 2017, May 2021",
    ),
    # posts and their normalised versions
    "lexnorm2015": DataSet(
        holds="English tweets, raw and normalised",
        files=("lexnorm2015.jsonl.gz",),
        columns="split, raw, norm (lists of words)",
        licence="data of a shared task: its guideline and Twitter's",
        judges=NOISE,
        origin="https://github.com/noisy-text/noisy-text.github.io; Baldwin et al. 2015, W-NUT",
    ),
    "multilexnorm2": DataSet(
        holds="posts in 17 languages, raw and normalised",
        files=("multilexnorm2.jsonl.gz",),
        columns="lang, split, raw, norm (lists of words)",
        licence="none stated, differs by language",
        judges=NOISE,
        origin="https://github.com/WeerayutBu/MultiLexNorm2; van der Goot et al. 2021",
    ),
    "vilexnorm": DataSet(
        holds="Vietnamese comments, raw and normalised",
        files=("vilexnorm.tsv.gz",),
        columns="split, raw, norm",
        licence="CC BY-NC-SA 4.0",
        judges=NOISE,
        origin="https://github.com/ngxtnhi/ViLexNorm; Nguyen et al. 2024, EACL",
    ),
    "hinglishnorm": DataSet(
        holds="chat in Hindi of Latin letters, raw and normalised",
        files=("hinglishnorm.tsv.gz",),
        columns="split, raw, norm",
        licence="CC BY-NC-SA 4.0",
        judges=NOISE,
        origin="https://github.com/piyushmakhija5/hinglishNorm; Makhija, Kumar, Gupta 2020",
    ),
    # posts of crises
    "disaster-messages-multilingual": DataSet(
        holds="messages in disasters, ht, en, fr, es, ur, with translations and 34 labels",
        files=MESSAGES,
        columns="id, text, text_en, lang, labels, genre, related",
        sources=("disaster-messages",),
        learnt=f"{PAIRS}; training.calibrate; {READ} (by id half of it)",
        judges="training.evaluate measures=needs; training.evaluate alerts (the other half)",
        origin="https://github.com/rmunro/disaster_response_messages, with originals as in Figure Eight's release; "
        "Munro 2012, https://purl.stanford.edu/cg721hb0673",
    ),
    "crisislex-t26": DataSet(
        holds="tweets of 26 crises, 2012 and 2013: informative or not, about what, by whom",
        files=TWEETS,
        columns="id, text, lang, labels (type, informativeness)",
        licence=MIT_TWEETS,
        judges=f"{CLASSES}; training.calibrate; {ORDINARY}",
        origin=f"{CRISISLEX}Vieweg, Castillo 2015, CSCW",
    ),
    "stream-crisis-t26": DataSet(
        holds="the same in order of time, with repeats",
        files=STREAM,
        columns="id, text, lang, event, cluster, created_at, related, type, dup_of",
        licence=MIT_TWEETS,
        learnt=READ,
        judges="training.evaluate alerts; training.evaluate_clusters; training.evaluate_likely",
        origin=f"{CRISISLEX}Vieweg, Castillo 2015, CSCW",
    ),
    "crisislex-t6": DataSet(
        holds="tweets of six crises, on or off topic",
        files=TWEETS,
        columns="id, text, lang, labels",
        licence=MIT_TWEETS,
        learnt=f"{READ}; training.mlm posts=crisislex-t6",
        judges=f"{CLASSES}; {ORDINARY}",
        origin=f"{CRISISLEX}Castillo, Diaz, Vieweg 2014, ICWSM",
    ),
    "crisisnlp-crowdflower": DataSet(
        holds="tweets of 12 crises, 2013 to 2015, classes by paid workers",
        files=TWEETS,
        columns="id, text, lang, labels",
        licence=CRISISNLP,
        judges=f"{CLASSES}; {ALERTS}",
        origin="https://crisisnlp.qcri.org; Imran, Mitra, Castillo 2016, LREC",
    ),
    "crisisnlp-volunteers": DataSet(
        holds="tweets of ten crises, 2014 and 2015, classes by volunteers",
        files=TWEETS,
        columns="id, text, lang",
        licence=CRISISNLP,
        judges=ALERTS,
        origin="https://crisisnlp.qcri.org; Imran, Mitra, Castillo 2016, LREC",
    ),
    "humaid": DataSet(
        holds="tweets of 19 disasters, 2016 to 2019, in ten classes",
        files=TWEETS,
        columns="id, text, lang, event, split, labels",
        licence=CRISISNLP,
        learnt="training.mlm posts=humaid, for research alone",
        judges=f"{CLASSES}, feedback, backends; {ALERTS}; {ORDINARY}",
        origin="https://crisisnlp.qcri.org; Alam, Qazi, Imran, Ofli 2021, ICWSM",
    ),
    "icwsm2018-nepal-queensland": DataSet(
        holds="tweets of an earthquake and a flood, relevant or not",
        files=TWEETS,
        columns="text, labels",
        licence=CRISISNLP,
        judges=CLASSES,
        origin="https://crisisnlp.qcri.org; Alam, Joty, Imran 2018, ACL and ICWSM",
    ),
    "need-offer-nepal-italy": DataSet(
        holds="tweets of two earthquakes: need, availability or neither; half of what was released",
        files=TWEETS,
        columns="id, text, lang, labels (a list)",
        licence=MIT_TWEETS,
        learnt=READ,
        judges="training.calibrate",
        origin="https://github.com/naveenbanda/Fire2017-NepalQuake-Tweets-Matching, "
        "https://github.com/OSM-DM-KGP/Narmada-server; Basu et al. 2017, FIRE IRMiDis; Dutt et al. 2019, IP&M; "
        "Hiware et al. 2020",
    ),
    "idrisi-lmr-ar": DataSet(
        holds="Arabic tweets with places marked",
        files=TWEETS,
        columns="id, text, lang, split, location_mentions (text, type, start, end)",
        licence="CC BY 4.0; Kawarith's labels CC BY-NC 4.0",
        learnt=READ,
        judges="training.measure_places",
        origin="https://github.com/rsuwaileh/IDRISI; Suwaileh, Imran, Elsayed 2023, ACL",
    ),
    "idrisi-lmr-en": DataSet(
        holds="English tweets of HumAID with places marked",
        files=TWEETS,
        columns="id, text, lang, split, location_mentions (text, type, start, end)",
        licence="CC BY 4.0",
        judges="training.measure_places",
        origin="https://github.com/rsuwaileh/IDRISI; Suwaileh, Elsayed, Imran 2023, IP&M",
    ),
    "idrisi-lmd": DataSet(
        holds="English and Arabic tweets with places marked and where they lie",
        files=TWEETS,
        columns="text, lang, split, location_mentions (text, start, end, offset_ok, lat, lon)",
        licence="CC BY 4.0; what is of OpenStreetMap ODbL 1.0",
        learnt="training.measure_places fit=true",
        judges="training.measure_places",
        origin="https://github.com/rsuwaileh/IDRISI; Suwaileh, Elsayed, Imran 2023, ArabicNLP",
    ),
    "trecis-stream": DataSet(
        holds="tweets of 25 incidents, 2012 to 2019, a tenth with priority and kind of information",
        files=STREAM,
        columns="id, text, lang, event, created_at, labels (priority, categories)",
        licence="none stated; data for participants of TREC",
        learnt="the scale of probabilities, posts that were read: training.head",
        judges="training.evaluate alerts",
        origin="https://github.com/SnowYJ/TREC-IS-2020, https://github.com/dice-group/TREC-IS, "
        "https://github.com/wangcongcong123/UCDTrecIS2019; McCreadie, Buntain, Soboroff 2019, ISCRAM",
    ),
    "stream-tweets-t": DataSet(
        holds="tweets of 269 topics in order, words alone",
        files=STREAM,
        columns="id, text, cluster",
        licence="none stated; of TREC Microblog",
        judges="training.evaluate_clusters; training.evaluate_likely",
        origin="https://github.com/jackyin12/MStream; Yin et al. 2018, KDD",
    ),
    "covid-vaccine-stance": DataSet(
        holds="tweets for, against and neutral on vaccines",
        files=TWEETS,
        columns="text, origin, labels",
        licence="GPL-3.0; the texts fall under Twitter's content terms",
        judges=CLASSES,
        origin="https://github.com/sohampoddar26/covid-vax-stance; Poddar et al. 2022, ICWSM; Cotfas et al. 2021",
    ),
    "sad-stressors": DataSet(
        holds="sentences like SMS on what makes stress",
        files=MESSAGES,
        columns="text, labels, is_stressor, is_covid",
        licence="MIT",
        judges=CLASSES,
        origin="https://github.com/PervasiveWellbeingTech/Stress-Annotated-Dataset-SAD; Mauriello et al. 2021, CHI EA",
    ),
}
