"""The syllabus as plain data: every exercise with its notebook, points, minutes and hints.

Loads without torch, so that listing and progress are instant. Not here: references (in the module
of the notebook), checkers (``vitedu.checks``), stubs (in the notebooks).
"""

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Exercise:
    """One thing a student writes or answers."""

    id: str  # the name of the function, class or value
    notebook: str  # stem of its notebook, such as "01_patches"
    number: str  # as the notebook counts: "1.1"
    title: str  # what it is, in a few words
    kind: str  # "function", "class" or "value"
    points: int
    minutes: int  # what a student may expect to need
    hints: tuple[str, ...] = ()  # three: a nudge, the idea, nearly the code

    @property
    def module(self) -> str:
        """The module that holds the reference."""
        stem = self.notebook.split("_", 1)[1]
        return "vitedu.vit" if self.id == "VisionTransformer" else f"vitedu.{stem}"

    @property
    def chapter(self) -> str:
        """The word that names notebook, module, checks and tests: "patches"."""
        return self.notebook.split("_", 1)[1]


EXERCISES: tuple[Exercise, ...] = (
    # --- 01_patches -------------------------------------------------------------------------
    Exercise(
        "patchify",
        "01_patches",
        "1.1",
        "cut an image into patches",
        "function",
        6,
        15,
        (
            "reshape never moves a value: it reads the same numbers in the same order. A patch holds a "
            "piece of two axes of the image. Which two?",
            "Split H into (gh, P) and W into (gw, P). That gives six axes. Then bring both grid axes in "
            "front of the channels, so that everything of one patch stands together, and flatten.",
            "images.reshape(B, C, gh, P, gw, P), then permute to (B, gh, gw, C, P, P), then reshape to "
            "three axes. Number the six axes 0 to 5 on paper and write the permutation down. The error "
            "for sizes that do not divide comes before all of it.",
        ),
    ),
    Exercise(
        "unpatchify",
        "01_patches",
        "1.2",
        "put it back together",
        "function",
        4,
        10,
        (
            "Go through your patchify backwards, from the last line to the first.",
            "The same six axes appear again. patchify goes from (B, C, gh, P, gw, P) to (B, gh, gw, C, "
            "P, P), and you go from the second order to the first. gh and gw follow from image_size. C "
            "follows from the length of a patch.",
            "patches.reshape(B, gh, gw, C, P, P); then a permutation that puts C next to B, each grid "
            "axis in front of its own pixel axis; then reshape(B, C, H, W). Undoing permute(0, 2, 4, 1, "
            "3, 5) is not the same as doing it once more.",
        ),
    ),
    Exercise(
        "linear_from_conv",
        "01_patches",
        "1.3",
        "a convolution that is a matrix",
        "function",
        4,
        10,
        (
            "Print conv.weight.shape and the weight shape of the nn.Linear you need. Both hold the same "
            "number of values.",
            "conv.weight is (D, C, P, P): D filters, each with the shape of one patch. The weight of "
            "nn.Linear is (D, C*P*P). patchify uses exactly the order in which flatten(1) reads a "
            "filter.",
            "Make nn.Linear(C*P*P, D, bias=conv.bias is not None), with dtype and device those of "
            "conv.weight, then inside torch.no_grad() use "
            "linear.weight.copy_(...) with the flattened filters, and the same for the bias. Assigning "
            "conv.weight.data itself would share memory, so training one layer would change the other.",
        ),
    ),
    Exercise(
        "tokens_at_224",
        "01_patches",
        "1.4",
        "how long is the sequence?",
        "value",
        1,
        2,
        (
            "The 16 in ViT-B/16 is the side of a patch in pixels.",
            "Count the patches along one side, then in the whole image. Then add the one token that is "
            "not a patch.",
            "(224 // 16) ** 2 patches, and one class token.",
        ),
    ),
    Exercise(
        "add_class_token_and_positions",
        "01_patches",
        "1.5",
        "one more token, and where each stands",
        "function",
        4,
        10,
        (
            "pos_embed has N+1 rows. Which of your tensors has N+1 tokens, and when?",
            "There is one class token (1, 1, D) but B images: expand repeats it to (B, 1, D) without "
            "copying. Join it with the patch tokens along the axis of tokens, to (B, N+1, D). Add the "
            "positions last.",
            "cls_token.expand(B, -1, -1), torch.cat([..., ...], dim=1), and then one addition, which "
            "broadcasts the 1 of pos_embed over the batch.",
        ),
    ),
    Exercise(
        "sincos_positions",
        "01_patches",
        "1.6",
        "positions as sines and cosines",
        "function",
        4,
        15,
        (
            "Every entry is the sine or cosine of an angle. Make the table of angles first: one row for "
            "each position, one column for each frequency. How many frequencies are there?",
            "D/2 frequencies, 1 / 10000**(2i/D) for i = 0 .. D/2-1. angle[p, i] is the position times "
            "the frequency: a column of positions against a row of frequencies. Sines go to the even "
            "columns, cosines to the odd ones.",
            "exponent = torch.arange(0, D, 2) / D; angle = position[:, None] / 10000**exponent. Then "
            "fill an empty table: table[:, 0::2] takes the sines, and the cosines go to the columns "
            "that are left. float64 inside and .float() at the end keeps large positions exact.",
        ),
    ),
    Exercise(
        "sincos_positions_2d",
        "01_patches",
        "1.7",
        "rows and columns",
        "function",
        4,
        10,
        (
            "You need no new sine: sincos_positions can write the code of a row number and the code of "
            "a column number.",
            "Make the codes of gh rows and of gw columns, each D/2 wide. In reading order the row "
            "number stays the same for gw cells, while the column number counts up. Repeat each table "
            "to gh*gw lines in that way, and put the two side by side.",
            "One table needs repeat_interleave(gw, dim=0), which repeats each line gw times. The other "
            "needs repeat(gh, 1), which repeats the whole table gh times. Then torch.cat along dim=1, "
            "the row code first. Test it with a grid of (2, 3), because a square grid hides a mix-up.",
        ),
    ),
    Exercise(
        "seam_neighbours",
        "01_patches",
        "1.8",
        "who is whose neighbour?",
        "value",
        2,
        5,
        (
            "In an 8 x 8 grid patch 7 is the last of the first row. Where are patches 8 and 0?",
            "Take two entries of each matrix of cosines: [7, 8], across the seam between two rows, and "
            "[0, 8], one step straight down. Compare the two entries, once for each code.",
            "bool(one_d[7, 8] > one_d[0, 8]) is the first of the pair; the second asks the same of two_d.",
        ),
    ),
    Exercise(
        "stem_tokens",
        "01_patches",
        "1.9",
        "three small steps instead of one large",
        "value",
        2,
        5,
        (
            "What does one convolution of stride 2 do to the side of an image?",
            "Run the stem of the cell above on one image of 224 px and look at the shape. A token is one "
            "place of the grid that comes out.",
            "stem(torch.zeros(1, 3, 224, 224)).shape gives the channels and the grid; multiply the two "
            "sides of the grid. The stem adds no class token.",
        ),
    ),
    # --- 02_attention -----------------------------------------------------------------------
    Exercise(
        "softmax",
        "02_attention",
        "2.1",
        "scores into weights",
        "function",
        4,
        10,
        (
            "Two things make a weight: it is positive, and all of them sum to 1. Which function makes "
            "any number positive and keeps the order?",
            "exp(1e4) is infinite. Subtracting the same constant from all scores along dim changes no "
            "weight. Choose the constant so that no score stays above 0: the largest score along dim.",
            "shifted = x - x.amax(dim=dim, keepdim=True), then exp of that, then divide by its own sum "
            "along the same dim. Without keepdim=True the subtraction pairs the wrong axes.",
        ),
    ),
    Exercise(
        "scaled_dot_product_attention",
        "02_attention",
        "2.2",
        "each query collects values",
        "function",
        6,
        15,
        (
            "A score belongs to one query and one key. Write the shapes of q, k and v on paper. Which "
            "two tensors give the table of scores, and which one must be transposed?",
            "The scores are q times k transposed in its last two axes, (..., Tq, Tk), divided by the "
            "square root of the key depth. Softmax runs over the axis of the keys. The output is the "
            "weights times v, (..., Tq, dv).",
            "k.transpose(-2, -1) works for any number of leading axes, where .T does not. The depth is "
            "k.shape[-1], the keys are the last axis of the scores. Return the pair, output first.",
        ),
    ),
    Exercise(
        "split_heads",
        "02_attention",
        "2.3",
        "a slice of columns for each head",
        "function",
        4,
        8,
        (
            "Do it in two moves: first cut the last axis in two, then bring the axes into the order that "
            "was asked for. Which axis is cut, and which must stay whole?",
            "reshape can cut D into (nh, hd), which gives (B, T, nh, hd). It cannot move nh in front of "
            "T. transpose does that, and gives (B, nh, T, hd).",
            "x.reshape(B, T, num_heads, D // num_heads) has the heads on axis 2 and the tokens on axis 1; "
            "exchange those two. Test D % num_heads first and name both numbers in the ValueError.",
        ),
    ),
    Exercise(
        "merge_heads",
        "02_attention",
        "2.4",
        "the slices side by side again",
        "function",
        3,
        5,
        (
            "It undoes split_heads. So it makes the same two moves in the opposite order.",
            "First exchange the axes of heads and tokens, which gives (B, T, nh, hd). Then merge the "
            "last two axes into one, (B, T, D).",
            "After x.transpose(1, 2) the shape is (B, T, nh, hd), and the last two axes become one. "
            ".view raises an error here, because transpose moved no data. .reshape and .flatten copy "
            "where they must.",
        ),
    ),
    Exercise(
        "MultiHeadAttention",
        "02_attention",
        "2.5",
        "the whole layer",
        "class",
        6,
        15,
        (
            "You have written every part: split_heads, scaled_dot_product_attention, merge_heads. The "
            "two linear layers are in __init__. What is left is the order.",
            "One product with self.qkv gives (B, T, 3D): the first D columns are q, the next D are k, "
            "the last D are v. Split each into heads, attend, merge, and let self.proj mix the heads.",
            "q, k, v = self.qkv(x).chunk(3, dim=-1); then split_heads(part, self.num_heads) for each of the "
            "three. Attention returns output and weights: the output goes through merge_heads and "
            "self.proj, the weights are returned as they are.",
        ),
    ),
    Exercise(
        "attention_macs",
        "02_attention",
        "2.6",
        "what it costs",
        "function",
        3,
        8,
        (
            "A matrix product (a, b) @ (b, c) costs a*b*c multiply-accumulates. List the products of the "
            "layer and write the shape of each.",
            "There are six products. Four are projections (q, k, v, output), each (T, D) @ (D, D). Two "
            "are between tokens: the scores and the weighted sum. Add up their heads: the number of "
            "heads cancels.",
            "The scores of one head cost T * hd * T; nh heads make that T * T * D. The weighted sum costs "
            "the same. Add four times the cost of one (T, D) @ (D, D) product.",
        ),
    ),
    Exercise(
        "attention_megabytes",
        "02_attention",
        "2.7",
        "what its weights weigh",
        "value",
        1,
        3,
        (
            "How many numbers are in weights, whose shape is (B, nh, T, T)? What is T with the class token?",
            "B * nh * T * T numbers of 4 bytes each, for one layer. A megabyte here is 10**6 bytes.",
            "T is 14 * 14 + 1, B is 32, nh is 12: multiply 32 * 12 * T * T * 4 and divide by 10**6.",
        ),
    ),
    Exercise(
        "order_blindness",
        "02_attention",
        "2.8",
        "what attention cannot see",
        "value",
        2,
        5,
        (
            "Measure it: compare output_of_shuffled with output, and then with output shuffled in the "
            "same way.",
            "Two comparisons, one boolean each. Rounding makes equal things differ in the seventh digit, "
            "so compare with torch.allclose and atol=1e-5.",
            "The pair is (torch.allclose(output_of_shuffled, output, atol=1e-5), and the same with "
            "output[:, permutation] in the place of output).",
        ),
    ),
    Exercise(
        "untrained_entropy",
        "02_attention",
        "2.9",
        "what an untrained map shows",
        "value",
        2,
        5,
        (
            "The entropy of one row of weights is -sum(w * log(w)). How large is it when all T weights "
            "are equal?",
            "Equal weights give log(T), the largest entropy there is. Divide by it, so that 1 means "
            "uniform; then average over images, heads and queries.",
            "entropy = -(weights * weights.log()).sum(dim=-1) has one value a row; divide it by "
            "math.log(weights.shape[-1]) and take the mean.",
        ),
    ),
    # --- 03_encoder -------------------------------------------------------------------------
    Exercise(
        "layer_norm",
        "03_encoder",
        "3.1",
        "normalise each token",
        "function",
        4,
        10,
        (
            "Every token has its own mean and its own variance. Compute both for the token [1, 3] by hand. "
            "Which axis do you average over?",
            "Average over the last axis and keep it: mean and variance have the shape (..., 1), so that "
            "each token is paired with its own. The variance is the mean of the squared distances, "
            "divided by D and not by D - 1. eps is added to the variance before the root is taken.",
            "mean = x.mean(dim=-1, keepdim=True). The variance is the same mean, of (x - mean) ** 2. "
            "Divide the distances by (variance + eps).sqrt(). Multiply by weight, then add bias.",
        ),
    ),
    Exercise(
        "gelu",
        "03_encoder",
        "3.2",
        "a soft gate",
        "function",
        3,
        5,
        (
            "The result is a product of two factors. One is the value itself. The other is the probability "
            "that a standard normal variable is smaller than the value.",
            "Every number is treated alone, so the shape stays. The probability comes from torch.erf. Its "
            "argument is x divided by the square root of 2. Its values run from -1 to 1, and a probability "
            "runs from 0 to 1.",
            "Phi(x) = (1 + torch.erf(x / math.sqrt(2))) / 2. Check it: Phi(0) is 0.5 and Phi(1) is 0.8413. "
            "The form with tanh and 0.044715 is an approximation, and it is not asked for.",
        ),
    ),
    Exercise(
        "EncoderBlock",
        "03_encoder",
        "3.3",
        "two residual steps",
        "class",
        6,
        15,
        (
            "Follow the upper drawing with a finger. At each fork one copy of x stays on the main road, and "
            "another copy goes through the side road.",
            "__init__ creates four modules: norm1, attn, norm2, mlp. forward does the same step twice: "
            "normalise a copy (B, T, D), change it, and add the result (B, T, D) to what came in. The "
            "second step starts from the result of the first.",
            "super().__init__() comes first. self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6), and norm2 is "
            "the same. The Mlp has the hidden width int(embed_dim * mlp_ratio). attn returns two things, "
            "and only the first is added: x = x + self.attn(self.norm1(x))[0]. The second line is yours.",
        ),
    ),
    Exercise(
        "VisionTransformer",
        "03_encoder",
        "3.4",
        "from pixels to logits",
        "class",
        6,
        15,
        (
            "__init__ lists the parts almost in the order in which an image meets them. The table above the "
            "exercise has the same order.",
            "patch_embed gives (B, N, D). Class token and positions make it (B, N+1, D). Every block and the "
            "norm keep that shape. One token, (B, D), goes to the head, which gives (B, K).",
            "x = self.patch_embed(images), then x = add_class_token_and_positions(x, self.cls_token, "
            "self.pos_embed). Loop over self.blocks, apply self.norm, and take the token that was put "
            "first, x[:, 0]. Return what the head makes of it.",
        ),
    ),
    Exercise(
        "class_token_alone",
        "03_encoder",
        "3.5",
        "a class token that meets nobody",
        "value",
        2,
        3,
        (
            "Print logits_alone and look at its eight rows. Then look at the gradient of the patch embedding.",
            "logits_alone has the shape (8, 10): count how many of the eight rows differ from each other. The "
            "head reads the class token, and without a block nothing moves from a patch to it.",
            "The first number is len(logits_alone.detach().unique(dim=0)). The second is "
            "alone.patch_embed.proj.weight.grad.abs().max().item(). It is exact, and not only small.",
        ),
    ),
    Exercise(
        "count_parameters",
        "03_encoder",
        "3.6",
        "where the parameters are",
        "function",
        4,
        15,
        (
            "Print the name and the size of every parameter of a small model, and explain each of them from "
            "its config. Every layer has a bias, with one exception that the config can switch off.",
            "Add up: patch convolution, class token (D), positions (N+1, D), depth times one block, final "
            "norm (2D), head (D, K). A block has two norms of 2D, qkv (D, 3D), proj (D, D), fc1 (D, hidden) "
            "and fc2 (hidden, D).",
            "A Linear(a, b) has a*b + b numbers. The bias of qkv has 3*D and exists only with "
            "config.qkv_bias. hidden is int(D * mlp_ratio). The convolution has in_channels * P * P * D + D. "
            "N is (image_size // P) ** 2.",
        ),
    ),
    Exercise(
        "mlp_share",
        "03_encoder",
        "3.7",
        "who owns the parameters of a block?",
        "value",
        2,
        3,
        (
            "The question is about one block and not about the model. Patch embedding, positions and head "
            "do not count.",
            "Divide the parameters of fc1 and fc2, biases included, by those of the whole block.",
            "With D = 768 the MLP has two matrices of 4 * D * D each, and the attention has four of D * D "
            "each. Biases and norms hardly matter. Give the fraction, between 0 and 1.",
        ),
    ),
    # --- 04_training ------------------------------------------------------------------------
    Exercise(
        "cross_entropy",
        "04_training",
        "4.1",
        "the price of a wrong belief",
        "function",
        5,
        12,
        (
            "Without smoothing, the price of one image is minus the logarithm of the probability that its "
            "own class got. exp can overflow. Do you need the probability itself?",
            "The table of log-probabilities (B, K) is logits - logsumexp, without any probability. Row i, "
            "column labels[i] gives the price of image i, so there are B prices. With smoothing, every "
            "column of the row counts s/K as well.",
            "log_probs = logits - logits.logsumexp(dim=-1, keepdim=True). The entries of the labels are "
            "log_probs[torch.arange(B), labels]. An image costs minus (1-s) times its entry, minus s times "
            "the mean of its row. Return the mean over the batch.",
        ),
    ),
    Exercise(
        "smoothing_floor",
        "04_training",
        "4.2",
        "the lowest loss that smoothing allows",
        "value",
        1,
        4,
        (
            "A smoothed target asks for 0.91 on the label, not for 1. Which probabilities would a perfect "
            "model give, and what does the loss charge for them?",
            "The price is lowest where the model gives exactly the target: 0.91 once and 0.01 nine times. "
            "This lowest price is the entropy of the target.",
            "Add 0.91 times -ln(0.91), and nine times 0.01 times -ln(0.01).",
        ),
    ),
    Exercise(
        "warmup_cosine",
        "04_training",
        "4.3",
        "the learning rate of every step",
        "function",
        5,
        12,
        (
            "There are two cases: a straight line before step warmup_steps, and half a cosine from there on. "
            "Steps count from 0. Which fraction of the peak does the very first step use?",
            "The climb is (step + 1) / warmup_steps of the peak. After it, progress grows to exactly 1 at "
            "the last step, and cos(pi * progress) falls from nearly 1 to -1.",
            "progress = (step + 1 - warmup_steps) / (total_steps - warmup_steps). The rate is final_lr plus "
            "(peak_lr - final_lr) times half of (1 + cos(pi * progress)). With the test step < warmup_steps, "
            "warmup_steps = 0 needs no case of its own.",
        ),
    ),
    Exercise(
        "weight_decay_groups",
        "04_training",
        "4.4",
        "what to shrink and what not",
        "function",
        4,
        10,
        (
            "model.named_parameters() gives names and tensors. Which property do biases and the scales of "
            "norms share, and a weight matrix does not?",
            "Biases and norms have one axis, (D,), and do not decay. Matrices have two axes and convolution "
            "kernels four, and they decay. cls_token and pos_embed have three, (1, T, D): recognise them by "
            "their names.",
            "Go through named_parameters() once and append each to one of two lists. It does not decay if "
            "parameter.ndim < 2, or if name.split('.')[-1] is 'cls_token' or 'pos_embed'. Return two dicts "
            "with the keys 'params' and 'weight_decay': the decayed group first, and 0.0 for the second.",
        ),
    ),
    Exercise(
        "random_crop_flip",
        "04_training",
        "4.5",
        "a new view of every image",
        "function",
        6,
        20,
        (
            "Write it for one image first. Draw the place of the window, cut the window out of the padded "
            "image, and mirror it if the coin says so. A loop over the batch is a correct answer.",
            "Each image (C, H, W) needs three draws of its own, each with generator=generator. The padded "
            "image is (C, H+2p, W+2p), and the window is (C, H, W). torch.randint excludes its upper end, so "
            "2 * padding needs high = 2 * padding + 1.",
            "rows = top + torch.arange(H) - padding are the rows to fetch. Some lie outside the image, and "
            "reflect(rows, H) brings them back. Do the same for the columns, and turn them round with "
            ".flip(-1) for a mirror image. One view is image[:, rows][:, :, columns]. torch.stack joins them.",
        ),
    ),
    Exercise(
        "views_of_one_image",
        "04_training",
        "4.6",
        "how many views are there?",
        "value",
        1,
        2,
        (
            "Count the places where the window can stand. Then think of the mirror.",
            "top can be any whole number from 0 to 8, both ends included. left is drawn separately.",
            "There are 9 values of top and 9 of left. Multiply them, and then by two.",
        ),
    ),
    Exercise(
        "train_one_epoch",
        "04_training",
        "4.7",
        "learn from every batch once",
        "function",
        6,
        15,
        (
            "Write the order of the steps on paper. Which step must come before the gradients are computed, "
            "and which between the gradients and the update?",
            "The logits are (B, K) and the labels (B,). cross_entropy gives the mean of one batch. For the "
            "mean over all images, multiply it by the number of images of the batch, add up, and divide by "
            "the images seen, not by the batches.",
            "total_loss += loss.item() * len(labels); correct += (logits.argmax(dim=-1) == "
            "labels).sum().item(); seen += len(labels). Clip between backward() and step() with "
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0). model.train() comes first.",
        ),
    ),
    Exercise(
        "evaluate",
        "04_training",
        "4.8",
        "measure without touching",
        "function",
        4,
        8,
        (
            "It is train_one_epoch without everything that learns. What must be as before when the function "
            "returns?",
            "Remember the mode of every submodule before model.eval(). A part may have been in eval mode on "
            "purpose while the rest was training, and model.train() would change it. The sums over logits "
            "(B, K) and labels (B,) are those of train_one_epoch.",
            "modes = {module: module.training for module in model.modules()}, then model.eval(). Run the loop "
            "inside torch.no_grad(). Then set module.training = mode for each of them.",
        ),
    ),
    Exercise(
        "last_batch_weight",
        "04_training",
        "4.9",
        "what a mean of means does",
        "value",
        1,
        3,
        (
            "How many full batches of 128 fit into 10,000 images, and how many images are left over?",
            "A mean of batch means counts every batch the same, however few images it has.",
            "An image of a full batch counts 1/128 of its batch. An image of the last batch counts 1/16. "
            "Divide the second by the first.",
        ),
    ),
)

BY_ID: dict[str, Exercise] = {exercise.id: exercise for exercise in EXERCISES}


def find(exercise_id: str) -> Exercise:
    """Look an exercise up by its id.

    Raises:
        ValueError: no such exercise; the message names the nearest ones.

    Example:
        >>> find("patchify").number
        '1.1'
    """
    if exercise_id in BY_ID:
        return BY_ID[exercise_id]
    folded = {known.casefold(): known for known in BY_ID}
    near = difflib.get_close_matches(str(exercise_id).casefold(), folded, n=3, cutoff=0.5)
    names = ", ".join(folded[name] for name in near)
    advice = f"did you mean {names}?" if near else "`vitedu list` shows them all."
    raise ValueError(f"there is no exercise {exercise_id!r}; {advice}")


def in_notebook(notebook: str) -> list[Exercise]:
    """Give the exercises of one notebook, in its order."""
    return [exercise for exercise in EXERCISES if exercise.notebook == notebook]


def notebook_named(name: str) -> str:
    """Find a notebook by its stem, file name, path or chapter.

    Raises:
        ValueError: no such notebook; the message lists the choices.

    Example:
        >>> notebook_named("notebooks/01_patches.ipynb"), notebook_named("attention")
        ('01_patches', '02_attention')
    """
    wanted = str(name).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".ipynb")
    known = list(dict.fromkeys(exercise.notebook for exercise in EXERCISES))
    for notebook in known:
        if wanted in (notebook, notebook.split("_", 1)[1]):
            return notebook
    raise ValueError(f"there is no notebook {str(name)!r}; there are {', '.join(known)}.")
