import numpy as np
import pytest

from laconic.networks import MODELS, Spec, Training, build, count_head_inputs, layout, outputs

GREY, COLOUR = (28, 28), (32, 32, 3)
# parameters, those of batch normalisations too but not their statistics, as the papers count them
PAPERS = {
    ("mlp", GREY, 10): 203_530,  # pFed1BS: 784-256-10
    ("cnn", GREY, 10): 582_026,  # FedAvg's
    ("cnn-fedpac", COLOUR, 10): 107_690,
    ("cnn-fedpac", GREY, 62): 123_774,
    ("resnet8", COLOUR, 10): 1_235_274,  # FedPURIN
    ("resnet10", COLOUR, 100): 4_957_092,
    ("vgg8", COLOUR, 10): 280_074,  # pFed1BS
    ("conv4", COLOUR, 10): 806_080 + 10,  # SpaFL, and a bias for each class
    ("lenet-caffe", GREY, 10): 431_080,
}


@pytest.mark.parametrize(("model", "shape", "n_classes"), PAPERS)
def test_models_have_as_many_parameters_as_the_papers_say(model: str, shape: tuple[int, ...], n_classes: int) -> None:
    assert layout(Spec(model, shape, n_classes)).n_trained == PAPERS[model, shape, n_classes]


@pytest.mark.parametrize("model", [name for name in MODELS if name != "vgg16"])  # its 15 million take long to draw
def test_every_model_takes_grey_and_colour_images(model: str) -> None:
    for shape in (GREY, COLOUR):
        features, logits = outputs(build(Spec(model, shape, 7, 255.0), 0), np.zeros((2, *shape), np.uint8))
        assert logits.shape == (2, 7)
        assert features.shape == (2, count_head_inputs(Spec(model, shape, 7, 255.0)))


def test_auto_fits_the_shape_of_an_example() -> None:
    for shape, model in {(5,): "mlp", (8, 8): "cnn-small", GREY: "cnn-fedpac"}.items():
        assert layout(Spec("auto", shape, 3)) == layout(Spec(model, shape, 3))


@pytest.mark.parametrize(
    ("model", "shape", "words"),
    [
        ("resnet9", GREY, 'model "resnet9" is unknown; there are mlp, .* or package.module:Class'),
        ("nowhere:Net", GREY, 'model "nowhere:Net": there is no module nowhere .* it must be installed, or lie in'),
        ("tiny_networks:Huge", GREY, 'model "tiny_networks:Huge": tiny_networks has no Huge; classes in it: .*Tiny'),
        ("cnn", (8, 8), r'model "cnn" takes no examples of shape \(8, 8\)'),
    ],
)
def test_models_that_cannot_be_made_are_refused(model: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        layout(Spec(model, shape, 10))


@pytest.mark.parametrize("model", ["resnet9", "nowhere:Net"])
def test_settings_name_a_model_that_is_not_there_before_any_data_are_loaded(model: str) -> None:
    with pytest.raises(ValueError, match=f'method.training.model "{model}"'):
        Training(model=model)
