"""Each kind of result in training/results: what it is, and its headline figures (training.figures prints them)."""

from __future__ import annotations

__all__ = ["HEADLINES"]

# Beginning of a file's name: what it is, and its headline figures by their place in the metrics
HEADLINES: dict[str, tuple[str, dict[str, str]]] = {
    "report/": (
        "every measure of the static encoder; read `report/report.md`",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
            "xSIM++ of mix_all": "noise/by_kind/mix_all/xsim++/mean",
            "needs, originals": "needs/originals",
        },
    ),
    "reader/": (
        "sentence matching and relatedness of the default encoder before it learnt on; read `reader/report.md`",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "NTREX": "matching/ntrex128/mean_paper",
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
        },
    ),
    "flores/": (
        "sentence matching (FLORES-200 devtest) of the default encoder; read `flores/report.md`",
        {"FLORES, the paper's languages": "matching/flores200 devtest/mean_paper"},
    ),
    "ntrex/": (
        "sentence matching (NTREX-128) of the default encoder; read `ntrex/report.md`",
        {"NTREX, the paper's languages": "matching/ntrex128/mean_paper"},
    ),
    "needs/": (
        "relatedness, and needs by the directions alone, of the default encoder; read `needs/report.md`",
        {
            "SemRel dev": "relatedness/SemRel2024 dev/mean",
            "STS-B": "relatedness/STS-B test/mean",
            "needs, originals": "needs/originals",
            "needs, translations": "needs/translations",
        },
    ),
    "speed/": (
        "posts/s of the default encoder at 40 pieces a post; read `speed/report.md`",
        {"a core-second": "speed/posts_per_core_s", "two processes": "speed/posts_per_s_together"},
    ),
    "speed-flood/": (
        "the same of the preset `flood`; read `speed-flood/report.md`",
        {"a core-second": "speed/posts_per_core_s", "two processes": "speed/posts_per_s_together"},
    ),
    "likely-": (
        "how often the likely cluster that an alert is told at once is where its post ends",
        {"right": "right", "p99 until told, s": "wait_s/with/p99", "without": "wait_s/without/p99"},
    ),
    "encoder-": (
        "headline measures of a published encoder",
        {
            "FLORES, the paper's languages": "matching/mean_paper",
            "SemRel dev": "relatedness/mean",
            "needs, originals": "needs/originals",
        },
    ),
    "whiten-": (
        "an encoder as it is and whitened: mean Spearman",
        {"as it is": "spearman_before", "whitened": "spearman_after"},
    ),
    "semrel-": (
        "SemRel's trained baselines: mean Spearman of the languages on dev (`training.semrel`)",
        {
            "as it is": "mean_before",
            "trained": "mean_after",
            "languages": "languages",
        },
    ),
    "classes-reader/": (
        "the same of the default encoder; read `classes-reader/report.md`",
        {
            "CrisisLex": "classes/crisislex-t26/d_avg",
            "CrisisNLP": "classes/crisisnlp-crowdflower/d_avg",
            "stance": "classes/covid-vaccine-stance/d_avg",
            "SAD Stress": "classes/sad-stress/d_avg",
        },
    ),
    "classes/": (
        "posts of one class: D_avg, static encoder; read `classes/report.md`",
        {
            "CrisisLex": "classes/crisislex-t26/d_avg",
            "CrisisNLP": "classes/crisisnlp-crowdflower/d_avg",
            "stance": "classes/covid-vaccine-stance/d_avg",
            "SAD Stress": "classes/sad-stress/d_avg",
        },
    ),
    "needs-whitened-": (
        "needs and matching of a whitened encoder",
        {
            "FLORES, the paper's languages": "matching/flores200 devtest/mean_paper",
            "needs, originals": "needs/originals",
        },
    ),
    "mlm-": ("masked LM: validation loss", {"before": "loss_before", "lowest": "loss_best"}),
    "clusters-": ("clusters of a stream, at the end", {"B³ F1": "final/b3_f1", "NMI": "final/nmi"}),
    "noise-": ("robustness to noise", {}),
    "papers/": ("a small run of one method of the papers, see below", {}),
    "alerts": (
        "how good the alerts are at default settings (`training.evaluate.alerts`)",
        {
            "written posts under their query": "figures/written/own_query/value",
            "alerts right, real posts": "figures/read/alerts_right/value",
            "ordinary texts that alert": "figures/ordinary/ordinary_alerted/value",
            "real posts among them": "figures/ordinary/chatter_alerted/value",
        },
    ),
    "shouted": (
        "needs and offers in capitals: right query alerts, read quietly and as they stand (`training.shouted`)",
        {
            "as typed": "as typed/read quietly/right_query_alerts",
            "capitals, quietly": "capitals/read quietly/right_query_alerts",
            "capitals, as they stand": "capitals/as they stand/right_query_alerts",
            "title, quietly": "title/read quietly/right_query_alerts",
            "title, as they stand": "title/as they stand/right_query_alerts",
        },
    ),
    "ablation": (
        "right query in 20 languages, of real posts under theirs, without parts of the score "
        "(`training.evaluate.ablation`)",
        {
            "whole": "without/whole/written, 20 languages/own_query",
            "no word axes": "without/no word axes/written, 20 languages/own_query",
            "not shared out": "without/p(query) alone, not shared out/written, 20 languages/own_query",
            "no written posts": "without/no written posts/written, 20 languages/own_query",
            "real, whole": "without/whole/real posts/own_query",
            "real, no word axes": "without/no word axes/real posts/own_query",
            "real, no real posts": "without/no real posts/real posts/own_query",
        },
    ),
    "scales": (
        "ways to make a score a probability, fitted on some events, judged on others (`training.evaluate.scales`)",
        {
            f"log loss, {name}": f"ways/{name}/log loss"
            for name in ("one line", "a line shifted by language", "isotonic by query")
        },
    ),
    "learning-curve": (
        "right query, real posts set aside under theirs, with a share of the posts to learn from "
        "(`training.evaluate.curve`)",
        {
            "a tenth": "curve/0.1/written, 20 languages/own_query",
            "a quarter": "curve/0.25/written, 20 languages/own_query",
            "half": "curve/0.5/written, 20 languages/own_query",
            "all": "curve/1.0/written, 20 languages/own_query",
            "real, a tenth": "curve/0.1/real posts/own_query",
            "real, all": "curve/1.0/real posts/own_query",
        },
    ),
    "feedback": (
        "what an analyst's labels teach, average precision over tasks (`training.evaluate.feedback`)",
        {
            "start": "start",
            "gain by 20": "true labels/20/gain",
            "100": "true labels/100/gain",
            "300": "true labels/300/gain",
            "a tenth wrong, 100": "some wrong/100/gain",
        },
    ),
    "places": (
        "places found in posts by name: words that people marked as places (IDRISI-R), and the place they meant "
        "(IDRISI-D)",
        {
            "precision, en": "words/en/precision",
            "recall, en": "words/en/recall",
            "ar": "words/ar/precision",
            "recall, ar": "words/ar/recall",
            "in place, en": "in_place/en/in_place",
            "ar, in place": "in_place/ar/in_place",
        },
    ),
    "backends-": (
        "CPU back-ends on one core, times sentence-transformers' speed",
        {
            "fp32": "backends/onnx fp32/times_sentence_transformers",
            "int8": "backends/onnx int8/times_sentence_transformers",
            "STS-B of int8": "backends/onnx int8/stsb_spearman",
        },
    ),
    "calibrate": (
        "ranking by query and calibrated thresholds",
        {"ranking, en": "ranking/en/mean", "ranking, ht": "ranking/ht/mean"},
    ),
    "sizes": (
        "layers and width of the reader against what each size reads, nothing adapted (`training.evaluate.sizes`): "
        "NTREX, posts a core-second",
        {
            f"{size}{told}": f"sizes/{size}/{name}"
            for size in ("3x1536", "6x1536", "9x1536", "12x1536", "9x768")
            for name, told in (("matching", ""), ("posts_per_core_s", ", posts/s"))
        },
    ),
}
