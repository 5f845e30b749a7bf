"""Checkers of the values that notebook 06 asks for."""

from vitedu import vit_and_cnn as reference
from vitedu.checks.values import ValueChecker, ValueMistake

CHECKERS = {
    "layers_to_see_all": ValueChecker(
        "layers_to_see_all", reference.layers_to_see_all,
        (
            ValueMistake("one_short", 111, "it is one layer short", "With 111 layers a cell sees 223 pixels.", "Look for the first number of layers with at least 224."),
            ValueMistake("half", 111.5, "a layer cannot be cut in half", "The equation gives a fraction; layers are whole.", "Round up."),
            ValueMistake("one_pixel_a_layer", 223, "a layer is taken to add one pixel", "A 3 x 3 kernel reaches one pixel to each side, so it adds two.", "Print receptive_field for 1, 2 and 3 layers."),
            ValueMistake("side", 224, "a layer is taken to add one pixel", "A 3 x 3 kernel reaches one pixel to each side, so it adds two.", "Print receptive_field for 1, 2 and 3 layers."),
            ValueMistake("three_a_layer", 75, "a layer is taken to add three pixels", "The kernel's middle stands where the cell already was.", "Print receptive_field for 1, 2 and 3 layers."),
            ValueMistake("three_a_layer_rounded_down", 74, "a layer is taken to add three pixels", "The kernel's middle stands where the cell already was.", "Print receptive_field for 1, 2 and 3 layers."),
            ValueMistake("multiplied", 5, "the receptive field is taken to grow by a factor", "Without strides it grows by two pixels a layer.", "Print receptive_field for 1, 2 and 3 layers."),
            ValueMistake("with_strides", 8, "every layer is given a stride", "The question is about stride 1.", "Keep all strides at 1."),
            ValueMistake("with_strides_short", 7, "every layer is given a stride", "The question is about stride 1.", "Keep all strides at 1."),
            ValueMistake("one_too_many", 113, "one layer fewer is enough", "With one layer fewer a cell already sees 225 pixels.", "Look for the first number of layers with at least 224."),
        ),
        proves="two pixels a layer, rounded up",
    ),
    "weight_uses": ValueChecker(
        "weight_uses", reference.weight_uses,
        (
            ValueMistake("no_stride", (224 * 224, 197), "the stride of the convolution is left out", "A stride of 2 halves both sides of the map.", "Count the places of the map that comes out."),
            ValueMistake("one_side", (112, 197), "one side of the map is counted", "A convolution visits all rows and all columns.", "Multiply both sides."),
            ValueMistake("no_class_token", (12_544, 196), "the class token is not counted", "It passes through the MLP as every token does.", "Add one to the patches."),
            ValueMistake("kernel", (49, 197), "the weights of a kernel are counted", "The question is how often one of them works.", "Count the places of the map that comes out."),
            ValueMistake("swapped", (197, 12_544), "the two numbers have changed places", "The convolution comes first.", "Turn the pair round."),
            ValueMistake("never_shared", (12_544, 1), "the weights of the MLP are taken to work once", "The same matrix is applied to every token.", "Count the tokens."),
            ValueMistake("all_layers", (12_544, 12 * 197), "all twelve blocks are counted", "Every block has weights of its own.", "Count the tokens of one block."),
            ValueMistake("wide_patches", (12_544, 14), "one side of the grid is counted", "There are 14 rows of 14 patches.", "Square it, and add the class token."),
        ),
        proves="a weight works once for each place, and a place of a ViT is a token",
    ),
    "token_shifts": ValueChecker(
        "token_shifts", reference.token_shifts,
        (
            ValueMistake("neither", (0, 0), "no token is said to follow either shift", "Rounding makes equal things differ in the seventh digit, and == counts that; or the grid was rolled the other way.",
                         "Use torch.isclose with atol=1e-4, between tokens_after and expected_tokens."),
            ValueMistake("both", (32, 32), "all tokens are said to follow both shifts", "A shift by one pixel brings other pixels into every patch.", "Print the largest difference for both."),
            ValueMistake("swapped", (0, 32), "the two answers have changed places", "The whole patch comes first.", "Turn the pair round."),
            ValueMistake("one_image", (16, 0), "the tokens of one image are counted", "There are two images of 16 patches.", "Count over the batch, too."),
            ValueMistake("values_counted", lambda v: v[0] == 32 * 64, "values are counted, not tokens", "A token is as expected if all of its values are.", "Take all(dim=1) before you count.", example=(2048, 5)),
        ),
        proves="a shift by whole patches only renumbers the tokens; a shift by a pixel makes new ones",
    ),
}  # fmt: skip
