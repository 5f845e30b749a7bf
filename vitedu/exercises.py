"""The syllabus as plain data: every exercise with its notebook, points, minutes and hints.

Loads without torch, so that listing and progress are instant. Not here: references (in the module
of the notebook), checkers (``vitedu.checks``), stubs (in the notebooks).
"""

import difflib
import re
from dataclasses import dataclass

CHAPTERS = (
    "patches",
    "attention",
    "encoder",
    "training",
    "inside",
    "vit_and_cnn",
    "less_data",
    "efficient",
    "transfer",
)


@dataclass(frozen=True)
class Exercise:
    """One thing a student writes or answers."""

    id: str  # the name of the function, class or value
    number: str  # as its notebook counts: "1.1"
    title: str  # what it is, in a few words
    points: int
    minutes: int  # what a student may expect to need
    nudge: str  # the first hint
    idea: str  # the second hint
    nearly: str  # the third hint: nearly the code
    kind: str = "function"  # or "class" or "value"
    measured: str = ""  # of a value: the expression that measures it, in names of its notebook

    @property
    def hints(self) -> tuple[str, str, str]:
        """The three hints, in the order in which they are given."""
        return self.nudge, self.idea, self.nearly

    @property
    def chapter(self) -> str:
        """The word that names notebook, module, checks and tests: "patches"."""
        return CHAPTERS[int(self.number.split(".")[0]) - 1]

    @property
    def notebook(self) -> str:
        """The stem of its notebook, such as "01_patches"."""
        return f"0{self.number.split('.')[0]}_{self.chapter}"

    @property
    def module(self) -> str:
        """The module that holds the reference."""
        return "vitedu.vit" if self.id == "VisionTransformer" else f"vitedu.{self.chapter}"

    @property
    def checker(self) -> str:
        """The stem of the file in ``vitedu/checks/<chapter>/`` that holds its checker.

        Example:
            >>> find("LoRALinear").checker, find("tokens_at_224").checker
            ('lora_linear', 'values')
        """
        if self.kind == "value":
            return "values"
        # a word begins with a capital that a small letter follows
        return re.sub(r"(?<=.)(?=[A-Z][a-z])", "_", self.id).lower()


EXERCISES: tuple[Exercise, ...] = (
    # --- 01_patches -------------------------------------------------------------------------
    Exercise(
        "patchify",
        "1.1",
        "cut an image into patches",
        6,
        15,
        "reshape never moves a value: it reads the same numbers in the same order. A patch holds "
        "a piece of two axes of the image. Which two?",
        "Split H into (gh, P) and W into (gw, P). That gives six axes. Then bring both grid axes "
        "in front of the channels, so that everything of one patch stands together, and flatten.",
        "images.reshape(B, C, gh, P, gw, P), then permute to (B, gh, gw, C, P, P), then reshape "
        "to three axes. Number the six axes 0 to 5 on paper and write the permutation down. The "
        "error for sizes that do not divide comes before all of it.",
    ),
    Exercise(
        "unpatchify",
        "1.2",
        "put it back together",
        4,
        10,
        "Go through your patchify backwards, from the last line to the first.",
        "The same six axes appear again. patchify goes from (B, C, gh, P, gw, P) to (B, gh, gw, "
        "C, P, P), and you go from the second order to the first. gh and gw follow from "
        "image_size. C follows from the length of a patch.",
        "patches.reshape(B, gh, gw, C, P, P); then a permutation that puts C next to B, each grid "
        "axis in front of its own pixel axis; then reshape(B, C, H, W). Undoing permute(0, 2, 4, "
        "1, 3, 5) is not the same as doing it once more.",
    ),
    Exercise(
        "linear_from_conv",
        "1.3",
        "a convolution that is a matrix",
        4,
        10,
        "Print conv.weight.shape and the weight shape of the nn.Linear you need. Both hold the "
        "same number of values.",
        "conv.weight is (D, C, P, P): D filters, each with the shape of one patch. The weight of "
        "nn.Linear is (D, C*P*P). patchify uses exactly the order in which flatten(1) reads a "
        "filter.",
        "Make nn.Linear(C*P*P, D, bias=conv.bias is not None), with dtype and device those of "
        "conv.weight, then inside torch.no_grad() use linear.weight.copy_(...) with the flattened "
        "filters, and the same for the bias. Assigning conv.weight.data itself would share "
        "memory, so training one layer would change the other.",
    ),
    Exercise(
        "tokens_at_224",
        "1.4",
        "how long is the sequence?",
        1,
        2,
        "The 16 in ViT-B/16 is the side of a patch in pixels.",
        "Count the patches along one side, then in the whole image. Then add the one token that "
        "is not a patch.",
        "(224 // 16) ** 2 patches, and one class token.",
        kind="value",
    ),
    Exercise(
        "add_class_token_and_positions",
        "1.5",
        "one more token, and where each stands",
        4,
        10,
        "pos_embed has N+1 rows. Which of your tensors has N+1 tokens, and when?",
        "There is one class token (1, 1, D) but B images: expand repeats it to (B, 1, D) without "
        "copying. Join it with the patch tokens along the axis of tokens, to (B, N+1, D). Add the "
        "positions last.",
        "cls_token.expand(B, -1, -1), torch.cat([..., ...], dim=1), and then one addition, which "
        "broadcasts the 1 of pos_embed over the batch.",
    ),
    Exercise(
        "sincos_positions",
        "1.6",
        "positions as sines and cosines",
        4,
        15,
        "Every entry is the sine or cosine of an angle. Make the table of angles first: one row "
        "for each position, one column for each frequency. How many frequencies are there?",
        "D/2 frequencies, 1 / 10000**(2i/D) for i = 0 .. D/2-1. angle[p, i] is the position times "
        "the frequency: a column of positions against a row of frequencies. Sines go to the even "
        "columns, cosines to the odd ones.",
        "exponent = torch.arange(0, D, 2) / D; angle = position[:, None] / 10000**exponent. Then "
        "fill an empty table: table[:, 0::2] takes the sines, and the cosines go to the columns "
        "that are left. float64 inside and .float() at the end keeps large positions exact.",
    ),
    Exercise(
        "sincos_positions_2d",
        "1.7",
        "rows and columns",
        4,
        10,
        "You need no new sine: sincos_positions can write the code of a row number and the code "
        "of a column number.",
        "Make the codes of gh rows and of gw columns, each D/2 wide. In reading order the row "
        "number stays the same for gw cells, while the column number counts up. Repeat each table "
        "to gh*gw lines in that way, and put the two side by side.",
        "One table needs repeat_interleave(gw, dim=0), which repeats each line gw times. The "
        "other needs repeat(gh, 1), which repeats the whole table gh times. Then torch.cat along "
        "dim=1, the row code first. Test it with a grid of (2, 3), because a square grid hides a "
        "mix-up.",
    ),
    Exercise(
        "seam_neighbours",
        "1.8",
        "who is whose neighbour?",
        2,
        5,
        "In an 8 x 8 grid patch 7 is the last of the first row. Where are patches 8 and 0?",
        "Take two entries of each matrix of cosines: [7, 8], across the seam between two rows, "
        "and [0, 8], one step straight down. Subtract the second entry from the first, once for "
        "each code.",
        "(one_d[7, 8] - one_d[0, 8]).item() is the first of the pair; the second asks the same of "
        "two_d.",
        kind="value",
        measured="tuple((cosines[7, 8] - cosines[0, 8]).item() for cosines in (one_d, two_d))",
    ),
    Exercise(
        "stem_tokens",
        "1.9",
        "three small steps instead of one large",
        2,
        5,
        "What does one convolution of stride 2 do to the side of an image?",
        "Run the stem of the cell above on one image of 224 px and look at the shape. A token is "
        "one place of the grid that comes out.",
        "stem(torch.zeros(1, 3, 224, 224)).shape gives the channels and the grid; multiply the "
        "two sides of the grid. The stem adds no class token.",
        kind="value",
        measured="stem(torch.zeros(1, 3, 224, 224))[0, 0].numel()",
    ),
    # --- 02_attention -----------------------------------------------------------------------
    Exercise(
        "softmax",
        "2.1",
        "scores into weights",
        4,
        10,
        "Two things make a weight: it is positive, and all of them sum to 1. Which function makes "
        "any number positive and keeps the order?",
        "exp(1e4) is infinite. Subtracting the same constant from all scores along dim changes no "
        "weight. Choose the constant so that no score stays above 0: the largest score along dim.",
        "shifted = x - x.amax(dim=dim, keepdim=True), then exp of that, then divide by its own "
        "sum along the same dim. Without keepdim=True the subtraction pairs the wrong axes.",
    ),
    Exercise(
        "scaled_dot_product_attention",
        "2.2",
        "each query collects values",
        6,
        15,
        "A score belongs to one query and one key. Write the shapes of q, k and v on paper. Which "
        "two tensors give the table of scores, and which one must be transposed?",
        "The scores are q times k transposed in its last two axes, (..., Tq, Tk), divided by the "
        "square root of the key depth. Softmax runs over the axis of the keys. The output is the "
        "weights times v, (..., Tq, dv).",
        "k.transpose(-2, -1) works for any number of leading axes, where .T does not. The depth "
        "is k.shape[-1], the keys are the last axis of the scores. Return the pair, output first.",
    ),
    Exercise(
        "split_heads",
        "2.3",
        "a slice of columns for each head",
        4,
        8,
        "Do it in two moves: first cut the last axis in two, then bring the axes into the order "
        "that was asked for. Which axis is cut, and which must stay whole?",
        "reshape can cut D into (nh, hd), which gives (B, T, nh, hd). It cannot move nh in front "
        "of T. transpose does that, and gives (B, nh, T, hd).",
        "x.reshape(B, T, num_heads, D // num_heads) has the heads on axis 2 and the tokens on "
        "axis 1; exchange those two. Test D % num_heads first and name both numbers in the "
        "ValueError.",
    ),
    Exercise(
        "merge_heads",
        "2.4",
        "the slices side by side again",
        3,
        5,
        "It undoes split_heads. So it makes the same two moves in the opposite order.",
        "First exchange the axes of heads and tokens, which gives (B, T, nh, hd). Then merge the "
        "last two axes into one, (B, T, D).",
        "After x.transpose(1, 2) the shape is (B, T, nh, hd), and the last two axes become one. "
        ".view raises an error here, because transpose moved no data. .reshape and .flatten copy "
        "where they must.",
    ),
    Exercise(
        "MultiHeadAttention",
        "2.5",
        "the whole layer",
        6,
        15,
        "You have written every part: split_heads, scaled_dot_product_attention, merge_heads. The "
        "two linear layers are in __init__. What is left is the order.",
        "One product with self.qkv gives (B, T, 3D): the first D columns are q, the next D are k, "
        "the last D are v. Split each into heads, attend, merge, and let self.proj mix the heads.",
        "q, k, v = self.qkv(x).chunk(3, dim=-1); then split_heads(part, self.num_heads) for each "
        "of the three. Attention returns output and weights: the output goes through merge_heads "
        "and self.proj, the weights are returned as they are.",
        kind="class",
    ),
    Exercise(
        "attention_macs",
        "2.6",
        "what it costs",
        3,
        8,
        "A matrix product (a, b) @ (b, c) costs a*b*c multiply-accumulates. List the products of "
        "the layer and write the shape of each.",
        "There are six products. Four are projections (q, k, v, output), each (T, D) @ (D, D). "
        "Two are between tokens: the scores and the weighted sum. Add up their heads: the number "
        "of heads cancels.",
        "The scores of one head cost T * hd * T; nh heads make that T * T * D. The weighted sum "
        "costs the same. Add four times the cost of one (T, D) @ (D, D) product.",
    ),
    Exercise(
        "attention_megabytes",
        "2.7",
        "what its weights weigh",
        1,
        3,
        "How many numbers are in weights, whose shape is (B, nh, T, T)? What is T with the class "
        "token?",
        "B * nh * T * T numbers of 4 bytes each, for one layer. A megabyte here is 10**6 bytes.",
        "T is 14 * 14 + 1, B is 32, nh is 12: multiply 32 * 12 * T * T * 4 and divide by 10**6.",
        kind="value",
    ),
    Exercise(
        "order_blindness",
        "2.8",
        "what attention cannot see",
        2,
        5,
        "Measure it: compare output_of_shuffled with output, and then with output shuffled in the "
        "same way.",
        "Two comparisons, one boolean each. Rounding makes equal things differ in the seventh "
        "digit, so compare with torch.allclose and atol=1e-5.",
        "The pair is (torch.allclose(output_of_shuffled, output, atol=1e-5), and the same with "
        "output[:, permutation] in the place of output).",
        kind="value",
        measured="tuple(torch.allclose(output_of_shuffled, x, atol=1e-5) for x in (output, output[:, "
        "permutation]))",
    ),
    Exercise(
        "untrained_entropy",
        "2.9",
        "what an untrained map shows",
        2,
        5,
        "The entropy of one row of weights is -sum(w * log(w)). How large is it when all T "
        "weights are equal?",
        "Equal weights give log(T), the largest entropy there is. Divide by it, so that 1 means "
        "uniform; then average over images, heads and queries.",
        "entropy = -(weights * weights.log()).sum(dim=-1) has one value a row; divide it by "
        "math.log(weights.shape[-1]) and take the mean.",
        kind="value",
        measured="(-(weights * weights.log()).sum(dim=-1) / math.log(weights.shape[-1])).mean().item()",
    ),
    # --- 03_encoder -------------------------------------------------------------------------
    Exercise(
        "layer_norm",
        "3.1",
        "normalise each token",
        4,
        10,
        "Every token has its own mean and its own variance. Compute both for the token [1, 3] by "
        "hand. Which axis do you average over?",
        "Average over the last axis and keep it: mean and variance have the shape (..., 1), so "
        "that each token is paired with its own. The variance is the mean of the squared "
        "distances, divided by D and not by D - 1. eps is added to the variance before the root "
        "is taken.",
        "mean = x.mean(dim=-1, keepdim=True). The variance is the same mean, of (x - mean) ** 2. "
        "Divide the distances by (variance + eps).sqrt(). Multiply by weight, then add bias.",
    ),
    Exercise(
        "gelu",
        "3.2",
        "a soft gate",
        3,
        5,
        "The result is a product of two factors. One is the value itself. The other is the "
        "probability that a standard normal variable is smaller than the value.",
        "Every number is treated alone, so the shape stays. The probability comes from torch.erf. "
        "Its argument is x divided by the square root of 2. Its values run from -1 to 1, and a "
        "probability runs from 0 to 1.",
        "Phi(x) = (1 + torch.erf(x / math.sqrt(2))) / 2. Check it: Phi(0) is 0.5 and Phi(1) is "
        "0.8413. The form with tanh and 0.044715 is an approximation, and it is not asked for.",
    ),
    Exercise(
        "EncoderBlock",
        "3.3",
        "two residual steps",
        6,
        15,
        "Follow the upper drawing with a finger. At each fork one copy of x stays on the main "
        "road, and another copy goes through the side road.",
        "__init__ creates four modules: norm1, attn, norm2, mlp. forward does the same step "
        "twice: normalise a copy (B, T, D), change it, and add the result (B, T, D) to what came "
        "in. The second step starts from the result of the first.",
        "super().__init__() comes first. self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6), and "
        "norm2 is the same. The Mlp has the hidden width int(embed_dim * mlp_ratio). attn returns "
        "two things, and only the first is added: x = x + self.attn(self.norm1(x))[0]. The second "
        "line is yours.",
        kind="class",
    ),
    Exercise(
        "VisionTransformer",
        "3.4",
        "from pixels to logits",
        6,
        15,
        "__init__ lists the parts almost in the order in which an image meets them. The table "
        "above the exercise has the same order.",
        "patch_embed gives (B, N, D). Class token and positions make it (B, N+1, D). Every block "
        "and the norm keep that shape. One token, (B, D), goes to the head, which gives (B, K).",
        "x = self.patch_embed(images), then x = add_class_token_and_positions(x, self.cls_token, "
        "self.pos_embed). Loop over self.blocks, apply self.norm, and take the token that was put "
        "first, x[:, 0]. Return what the head makes of it.",
        kind="class",
    ),
    Exercise(
        "class_token_alone",
        "3.5",
        "a class token that meets nobody",
        2,
        3,
        "Print logits_alone and look at its eight rows. Then look at the gradient of the patch "
        "embedding.",
        "logits_alone has the shape (8, 10): count how many of the eight rows differ from each "
        "other. The head reads the class token, and without a block nothing moves from a patch to "
        "it.",
        "The first number is len(logits_alone.detach().unique(dim=0)). The second is "
        "alone.patch_embed.proj.weight.grad.abs().max().item(). It is exact, and not only small.",
        kind="value",
        measured="(len(logits_alone.detach().unique(dim=0)), "
        "alone.patch_embed.proj.weight.grad.abs().max().item())",
    ),
    Exercise(
        "count_parameters",
        "3.6",
        "where the parameters are",
        4,
        15,
        "Print the name and the size of every parameter of a small model, and explain each of "
        "them from its config. Every layer has a bias, with one exception that the config can "
        "switch off.",
        "Add up: patch convolution, class token (D), positions (N+1, D), depth times one block, "
        "final norm (2D), head (D, K). A block has two norms of 2D, qkv (D, 3D), proj (D, D), fc1 "
        "(D, hidden) and fc2 (hidden, D).",
        "A Linear(a, b) has a*b + b numbers. The bias of qkv has 3*D and exists only with "
        "config.qkv_bias. hidden is int(D * mlp_ratio). The convolution has in_channels * P * P * "
        "D + D. N is (image_size // P) ** 2.",
    ),
    Exercise(
        "mlp_share",
        "3.7",
        "who owns the parameters of a block?",
        2,
        3,
        "The question is about one block and not about the model. Patch embedding, positions and "
        "head do not count.",
        "Divide the parameters of fc1 and fc2, biases included, by those of the whole block.",
        "With D = 768 the MLP has two matrices of 4 * D * D each, and the attention has four of D "
        "* D each. Biases and norms hardly matter. Give the fraction, between 0 and 1.",
        kind="value",
    ),
    # --- 04_training ------------------------------------------------------------------------
    Exercise(
        "cross_entropy",
        "4.1",
        "the price of a wrong belief",
        5,
        12,
        "Without smoothing, the price of one image is minus the logarithm of the probability that "
        "its own class got. exp can overflow. Do you need the probability itself?",
        "The table of log-probabilities (B, K) is logits - logsumexp, without any probability. "
        "Row i, column labels[i] gives the price of image i, so there are B prices. With "
        "smoothing, every column of the row counts s/K as well.",
        "log_probs = logits - logits.logsumexp(dim=-1, keepdim=True). The entries of the labels "
        "are log_probs[torch.arange(B), labels]. An image costs minus (1-s) times its entry, "
        "minus s times the mean of its row. Return the mean over the batch.",
    ),
    Exercise(
        "smoothing_floor",
        "4.2",
        "the lowest loss that smoothing allows",
        1,
        4,
        "A smoothed target asks for 0.91 on the label, not for 1. Which probabilities would a "
        "perfect model give, and what does the loss charge for them?",
        "The price is lowest where the model gives exactly the target: 0.91 once and 0.01 nine "
        "times. This lowest price is the entropy of the target.",
        "Add 0.91 times -ln(0.91), and nine times 0.01 times -ln(0.01).",
        kind="value",
    ),
    Exercise(
        "warmup_cosine",
        "4.3",
        "the learning rate of every step",
        5,
        12,
        "There are two cases: a straight line before step warmup_steps, and half a cosine from "
        "there on. Steps count from 0. Which fraction of the peak does the very first step use?",
        "The climb is (step + 1) / warmup_steps of the peak. After it, progress grows to exactly "
        "1 at the last step, and cos(pi * progress) falls from nearly 1 to -1.",
        "progress = (step + 1 - warmup_steps) / (total_steps - warmup_steps). The rate is "
        "final_lr plus (peak_lr - final_lr) times half of (1 + cos(pi * progress)). With the test "
        "step < warmup_steps, warmup_steps = 0 needs no case of its own.",
    ),
    Exercise(
        "weight_decay_groups",
        "4.4",
        "what to shrink and what not",
        4,
        10,
        "model.named_parameters() gives names and tensors. Which property do biases and the "
        "scales of norms share, and a weight matrix does not?",
        "Biases and norms have one axis, (D,), and do not decay. Matrices have two axes and "
        "convolution kernels four, and they decay. cls_token and pos_embed have three, (1, T, D): "
        "recognise them by their names.",
        "Go through named_parameters() once and append each to one of two lists. It does not "
        "decay if parameter.ndim < 2, or if name.split('.')[-1] is 'cls_token' or 'pos_embed'. "
        "Return two dicts with the keys 'params' and 'weight_decay': the decayed group first, and "
        "0.0 for the second.",
    ),
    Exercise(
        "random_crop_flip",
        "4.5",
        "a new view of every image",
        6,
        20,
        "Write it for one image first. Draw the place of the window, cut the window out of the "
        "padded image, and mirror it if the coin says so. A loop over the batch is a correct "
        "answer.",
        "Each image (C, H, W) needs three draws of its own, each with generator=generator. The "
        "padded image is (C, H+2p, W+2p), and the window is (C, H, W). torch.randint excludes its "
        "upper end, so 2 * padding needs high = 2 * padding + 1.",
        "rows = top + torch.arange(H) - padding are the rows to fetch. Some lie outside the "
        "image, and reflect(rows, H) brings them back. Do the same for the columns, and turn them "
        "round with .flip(-1) for a mirror image. One view is image[:, rows][:, :, columns]. "
        "torch.stack joins them.",
    ),
    Exercise(
        "views_of_one_image",
        "4.6",
        "how many views are there?",
        1,
        2,
        "Count the places where the window can stand. Then think of the mirror.",
        "top can be any whole number from 0 to 8, both ends included. left is drawn separately.",
        "There are 9 values of top and 9 of left. Multiply them, and then by two.",
        kind="value",
    ),
    Exercise(
        "train_one_epoch",
        "4.7",
        "learn from every batch once",
        6,
        15,
        "Write the order of the steps on paper. Which step must come before the gradients are "
        "computed, and which between the gradients and the update?",
        "The logits are (B, K) and the labels (B,). cross_entropy gives the mean of one batch. "
        "For the mean over all images, multiply it by the number of images of the batch, add up, "
        "and divide by the images seen, not by the batches.",
        "total_loss += loss.item() * len(labels); correct += (logits.argmax(dim=-1) == "
        "labels).sum().item(); seen += len(labels). Clip between backward() and step() with "
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0). model.train() comes first.",
    ),
    Exercise(
        "evaluate",
        "4.8",
        "measure without touching",
        4,
        8,
        "It is train_one_epoch without everything that learns. What must be as before when the "
        "function returns?",
        "Remember the mode of every submodule before model.eval(). A part may have been in eval "
        "mode on purpose while the rest was training, and model.train() would change it. The sums "
        "over logits (B, K) and labels (B,) are those of train_one_epoch.",
        "modes = {module: module.training for module in model.modules()}, then model.eval(). Run "
        "the loop inside torch.no_grad(). Then set module.training = mode for each of them.",
    ),
    Exercise(
        "last_batch_weight",
        "4.9",
        "what a mean of means does",
        1,
        3,
        "How many full batches of 128 fit into 10,000 images, and how many images are left over?",
        "A mean of batch means counts every batch the same, however few images it has.",
        "An image of a full batch counts 1/128 of its batch. An image of the last batch counts "
        "1/16. Divide the second by the first.",
        kind="value",
    ),
    # --- 05_inside --------------------------------------------------------------------------
    Exercise(
        "class_attention",
        "5.1",
        "where the class token looks",
        3,
        6,
        "weights[b, h, i, j] is how much token i looks at token j. Which of the two indices is "
        "fixed here, and to what?",
        "Take the row of token 0, for all images and heads. Its first entry is the class token "
        "itself; the last gh * gw are the patches, row by row of the grid.",
        "weights[:, :, 0, -N:] with N = gh * gw has shape (B, nh, N). Fold its last axis into "
        "(gh, gw) with unflatten or reshape, gh first.",
    ),
    Exercise(
        "uniform_distance",
        "5.2",
        "how far does an even look reach?",
        2,
        6,
        "An even head gives every patch the same weight, the query's own patch too. Its distance "
        "is then a plain mean. Over which pairs?",
        "List the row and column of all 64 patches. The mean goes over all 64 x 64 pairs of query "
        "and key, and each pair has a straight-line distance.",
        "places = torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0)); torch.cdist gives "
        "all distances between two lists of places. Take the mean of the whole table.",
        kind="value",
    ),
    Exercise(
        "attention_rollout",
        "5.3",
        "through all layers at once",
        6,
        15,
        "One layer maps its input tokens to its output tokens: new = M @ old. What is the matrix "
        "of two layers, one after the other? On which side does the second one stand?",
        "For each layer: average the heads, add the identity, halve, and divide every row by its "
        "sum. Start with the first layer and put each further matrix to the left of the product.",
        "step = (weights.mean(dim=1) + identity) / 2; then step / step.sum(dim=-1, keepdim=True); "
        "then rollout = step @ rollout. torch.eye needs the dtype and device of the weights.",
    ),
    Exercise(
        "rollout_self_share",
        "5.4",
        "what rollout says of nothing",
        2,
        4,
        "Uniform weights over 65 tokens are 1/65 each. You have a function that takes a list of "
        "layers.",
        "Make four layers of torch.full((1, 1, 65, 65), 1 / 65) and look at the entry of the "
        "class token in its own row.",
        "attention_rollout([torch.full((1, 1, 65, 65), 1 / 65)] * 4)[0, 0, 0].",
        kind="value",
    ),
    Exercise(
        "pointing_game",
        "5.5",
        "does a map point at the object?",
        6,
        15,
        "Two questions for each image: which patch is the hottest, and does that patch contain a "
        "pixel of the object? Answer them one after the other.",
        "argmax over the flattened map gives the number of the patch. Cut the mask into the same "
        "grid, as patchify does, and ask of every patch whether any pixel is true.",
        "masks.reshape(B, gh, P, gw, P) with P = H // gh, then .any(dim=4).any(dim=2) is (B, gh, "
        "gw). Flatten it, gather at the hottest patches, and take the mean over the images.",
    ),
    Exercise(
        "logit_lens",
        "5.6",
        "the answer after every block",
        4,
        8,
        "How does the model turn the tokens after its last block into logits? Do the same after "
        "every block.",
        "For each layer: the final norm, token 0, the head. Collect the (B, K) of all layers "
        "along a new first axis.",
        "A list of head(norm(tokens[:, 0])) for the tokens of each layer, then torch.stack.",
    ),
    Exercise(
        "position_similarity",
        "5.7",
        "which positions are alike?",
        4,
        8,
        "A cosine is a dot product of two vectors of length 1. Which rows of pos_embed do you "
        "need, and how many tokens stand before them?",
        "Take the last N = gh * gw rows, divide each by its own length, and multiply the table by "
        "its transpose: entry (i, j) is the cosine of i and j.",
        "unit = normalize(pos_embed[0, -N:], dim=-1); unit @ unit.T is (N, N). Fold its last axis "
        "into (gh, gw).",
    ),
    Exercise(
        "confusion_matrix",
        "5.8",
        "which class for which",
        4,
        8,
        "Every image adds 1 in one place. matrix[labels, predictions] += 1 looks right; try it "
        "with two images of the same kind.",
        "A pair of classes can be written as one number from 0 to K*K - 1. Then it is enough to "
        "count how often each number occurs.",
        "torch.bincount(labels * K + predictions, minlength=K * K), folded into (K, K). Which of "
        "the two classes is multiplied decides which one counts the rows.",
    ),
    # --- 06_vit_and_cnn ---------------------------------------------------------------------
    Exercise(
        "receptive_field",
        "6.1",
        "what a cell may depend on",
        4,
        12,
        "Draw a row of nine pixels and two layers of kernel size 3 below it, the first with "
        "stride 2. Which pixels can reach one cell of the last row?",
        "Keep two numbers: how many pixels a cell sees, and how many pixels lie between two "
        "neighbouring cells. Before any layer both are 1. Which of them does a kernel change, and "
        "which a stride?",
        "A layer adds (kernel_size - 1) * step to the size. After that its stride multiplies "
        "step. Loop over both lists together, first layer first, in this order.",
    ),
    Exercise(
        "layers_to_see_all",
        "6.2",
        "how deep must it be?",
        1,
        3,
        "Print receptive_field([3] * L, [1] * L) for L = 1, 2, 3.",
        "Every layer adds the same number of pixels. Write the receptive field as a formula of L.",
        "Find the smallest L with 2 * L + 1 at least 224. A loop over L is fine.",
        kind="value",
        measured="next(L for L in range(1, 224) if receptive_field([3] * L, [1] * L) >= 224)",
    ),
    Exercise(
        "effective_receptive_field",
        "6.3",
        "what a cell does depend on",
        6,
        18,
        "A pixel matters to a cell if a small change of the pixel changes the cell. Which "
        "derivative says how much?",
        "Make a copy of the images that requires gradients. Compute the feature map, add up the "
        "middle cell over channels and images, and take the gradient of that one number. Then "
        "only sizes count.",
        "(gradient,) = torch.autograd.grad(features[:, :, gh // 2, gw // 2].sum(), pixels) has "
        "the shape of the images. abs() comes first, then sum(dim=1), then mean(dim=0), then the "
        "division.",
    ),
    Exercise(
        "weight_uses",
        "6.4",
        "how often does one weight work?",
        2,
        4,
        "A convolution puts the same kernel at every place of the map that comes out. What is the "
        "counterpart of a place in a ViT?",
        "A convolution of stride 2 halves both sides of the map. The MLP of a block treats every "
        "token alike, and there is one token that is not a patch.",
        "The first number is 112 rows times 112 columns. The second is the number of tokens at "
        "224 px with patches of 16.",
        kind="value",
    ),
    Exercise(
        "token_shifts",
        "6.5",
        "which shifts does a ViT follow?",
        2,
        5,
        "Measure it: compare tokens_after with expected_tokens, once for each shift.",
        "Both are (B, D, 4, 4). A token is as expected if all of its D values are. Rounding makes "
        "equal things differ in the sixth digit, so use torch.isclose with atol=1e-4.",
        "torch.isclose(tokens_after['one patch'], expected_tokens['one patch'], "
        "atol=1e-4).all(dim=1).sum().item() is the first of the pair, and the second asks the "
        "same of 'one pixel'.",
        kind="value",
        measured="tuple(torch.isclose(tokens_after[shift], expected_tokens[shift], "
        "atol=1e-4).all(dim=1).sum().item() for shift in tokens_after)",
    ),
    Exercise(
        "shift_consistency",
        "6.6",
        "how many answers survive a shift?",
        5,
        12,
        "You need two sets of predictions, of the images as they are and of the rolled images. "
        "What else must be as before when the function returns?",
        "torch.roll takes two shifts and two dims at once; rows are the axis -2. Compare the "
        "classes, not the logits. evaluate of notebook 04 shows how modes are remembered.",
        "modes = {module: module.training for module in model.modules()}; model.eval(); then "
        "under torch.no_grad() the mean of model(images).argmax(dim=-1) == "
        "model(images.roll(shift, dims=(-2, -1))).argmax(dim=-1); then the modes again.",
    ),
    Exercise(
        "shuffle_patches",
        "6.7",
        "the same patches in another order",
        4,
        8,
        "You wrote two functions in notebook 01 that go from images to patches and back.",
        "patchify gives (B, N, C*P*P). Only the axis of the patches is put in another order. "
        "unpatchify needs the size of the images.",
        "patches[:, permutation] reads patch permutation[i] for place i. The size of the images "
        "is images.shape[-2:].",
    ),
    Exercise(
        "linear_cka",
        "6.8",
        "do two layers say the same?",
        5,
        12,
        "Compare a layer with itself on paper: what do the three products of matrices become, and "
        "what must the result be?",
        "Centre the columns of both sides first. Then three products of matrices: one between the "
        "sides, one for each side with itself. Only the first norm is squared.",
        "(y.T @ x).square().sum() is the squared Frobenius norm. Divide it by (x.T @ x).norm() "
        "times (y.T @ y).norm().",
    ),
    # --- 07_less_data -----------------------------------------------------------------------
    Exercise(
        "mixup",
        "7.1",
        "blend two images and their labels",
        4,
        8,
        "Which image does lam weigh, and what does the other one get? The labels are mixed in the "
        "same way, but class numbers cannot be averaged.",
        "images[permutation] puts every partner in place. Turn labels (B,) into rows (B, K) with "
        "a single 1 each, and blend rows as you blend images.",
        "mixed = lam * images + (1 - lam) * images[permutation]; one_hot = F.one_hot(labels, "
        "num_classes) in the dtype of the images; then the same line with one_hot.",
    ),
    Exercise(
        "cutmix",
        "7.2",
        "paste a piece of another image",
        6,
        15,
        "Which pixels come from the partner? The labels follow what was pasted, which may be less "
        "than the box promises.",
        "Bring top and bottom into 0 .. H, left and right into 0 .. W, then count the pixels that "
        "are left of the box. An empty box has area 0 and not less. Write into a clone of the "
        "images.",
        "mixed[:, :, top:bottom, left:right] = images[permutation][:, :, top:bottom, left:right]; "
        "share = area / (H * W); labels (1 - share) * one_hot + share * one_hot[permutation]. "
        "Labels of uint8 images are float32.",
    ),
    Exercise(
        "smoothed_gap",
        "7.3",
        "how far logits grow with smoothed labels",
        2,
        5,
        "Write down the target of one image: ten numbers that sum to 1. Which prediction is the "
        "best answer to it?",
        "The best prediction is the target itself. Softmax makes it of logits, so the ratio of "
        "two probabilities is the exponential of the difference of their logits.",
        "The target has 0.9 + 0.1 / 10 once and 0.1 / 10 nine times. The gap is the logarithm of "
        "the ratio.",
        kind="value",
    ),
    Exercise(
        "drop_path",
        "7.4",
        "skip a branch for some images",
        6,
        15,
        "How many random numbers does a batch of B samples need? And by what must those that stay "
        "be multiplied, so that the mean over many draws is x?",
        "Draw B numbers from the generator, compare them with drop_prob, and shape the result so "
        "that it multiplies whole samples. A sample stays with probability 1 - drop_prob, so "
        "divide by that. Refuse impossible probabilities before anything else.",
        "stays = torch.rand(len(x), generator=generator, device=...) >= drop_prob; reshape to (B, "
        "1, ..., 1); x * stays / (1 - drop_prob). Draw on the generator's device, then move to "
        "x's device and dtype. Return x where training is false.",
    ),
    Exercise(
        "distillation_loss",
        "7.5",
        "two heads, two targets",
        3,
        6,
        "Two heads, two targets. Which head answers to the label, which to the teacher?",
        "The teacher's answer is one class for each image. With that it is a label like any other.",
        "said = teacher_logits.argmax(dim=-1); half of F.cross_entropy(cls_logits, labels) plus "
        "half of F.cross_entropy(dist_logits, said).",
    ),
    Exercise(
        "random_masking",
        "7.6",
        "hide most of an image",
        8,
        20,
        "Sorting the noise of an image gives an order of its tokens. Which part of that order "
        "stays? And which question does the inverse of an order answer?",
        "order = argsort of the noise says which token stands at each place. argsort of order "
        "says at which place each token stands: that is restore. A token is hidden if its place "
        "is M or later.",
        "kept = tokens.gather(1, order[:, :M, None].expand(-1, -1, D)) with M = round(N * (1 - "
        "mask_ratio)); restore = order.argsort(dim=1); mask = (restore >= M) in the dtype of "
        "tokens.",
    ),
    Exercise(
        "masked_patch_loss",
        "7.7",
        "the error where it was hidden",
        4,
        8,
        "Two averages stand in this loss. What does each of them run over?",
        "The mean over the pixels of a patch gives (B, N). Of these only the hidden ones count, "
        "and all hidden patches of the batch count the same.",
        "per_patch = ((prediction - target) ** 2).mean(dim=-1); (per_patch * mask).sum() / "
        "mask.sum(). A boolean mask becomes numbers with .to(per_patch.dtype).",
    ),
    Exercise(
        "dino_loss",
        "7.8",
        "one view answers for another",
        5,
        12,
        "The teacher gives the target. What happens to its logits before the softmax, and in "
        "which order? Which of the arguments may not learn?",
        "Teacher: subtract center, divide by its temperature, softmax, and no gradient. Student: "
        "divide by its own temperature, log-softmax. Then a cross-entropy, averaged over the "
        "images.",
        "target = ((teacher_logits - center) / teacher_temperature).softmax(dim=-1).detach(); "
        "minus (target * log_student).sum(dim=-1).mean().",
    ),
    Exercise(
        "collapse_losses",
        "7.9",
        "what does the loss say of a collapse?",
        2,
        5,
        "Call your dino_loss. What do logits look like that are all even? And logits that are "
        "sure of one prototype?",
        "Even: zeros of shape (B, 64). Sure: 100 in column 0 and 0 elsewhere, for every image. "
        "Student and teacher give the same, and the centre is zero.",
        "even = torch.zeros(4, 64); sure = even.clone() with sure[:, 0] = 100; dino_loss(even, "
        "even, torch.zeros(64)) and the same for sure, both as floats.",
        kind="value",
    ),
    # --- 08_efficient -----------------------------------------------------------------------
    Exercise(
        "window_partition",
        "8.1",
        "cut a grid into windows",
        4,
        10,
        "You have done this to pixels: patchify cuts an image into squares. Which axis is new "
        "here, and which one of patchify is missing?",
        "Split gh into (gh // w, w) and gw into (gw // w, w). That gives six axes. Bring the two "
        "window axes together behind the batch, and the two token axes together behind them.",
        "x.reshape(B, gh // w, w, gw // w, w, D), then a permutation that exchanges two "
        "neighbouring axes, then reshape(-1, w * w, D).",
    ),
    Exercise(
        "window_merge",
        "8.2",
        "put the windows back",
        3,
        6,
        "Go through window_partition backwards, from the last line to the first.",
        "The first axis holds batch, windows down and windows across, in this order. You know the "
        "last two from grid_size, so reshape can find the batch by itself: -1.",
        "windows.reshape(-1, gh // w, gw // w, w, w, D). The permutation of window_partition "
        "exchanged two axes, and doing it again undoes it. Then reshape(-1, gh, gw, D).",
    ),
    Exercise(
        "shifted_window_mask",
        "8.3",
        "keep strangers apart",
        6,
        20,
        "Roll a small grid of numbers with torch.roll(x, (-1, -1), (0, 1)) and print it. Which "
        "rows and columns have neighbours now that they did not have before?",
        "After the roll the last shift rows came from the top, the last shift columns from the "
        "left. Give each token the number of its region: 0, 1, 2 or 3. Two tokens may look at "
        "each other if their numbers are equal.",
        "region = 2 * (row came from the top) + (column came from the left), a (gh, gw) table. "
        "window_partition wants (B, gh, gw, D), so give it region[None, :, :, None]. Compare the "
        "result as a column with itself as a row.",
    ),
    Exercise(
        "tokens_reached",
        "8.4",
        "how far two blocks see",
        2,
        5,
        "The cell above has a function that counts. Give it both blocks, one after the other.",
        "Call reach with a function that applies shift 0 and then shift 2, once for the corner "
        "and once for the token in the middle.",
        "Draw the shifted window of each token on paper. It overlaps one window of the first "
        "block, or four of them.",
        kind="value",
        measured="tuple(reach(lambda x: shifted(shifted(x, 0), 2), token).sum().item() for token in ((0, "
        "0), (5, 5)))",
    ),
    Exercise(
        "relative_position_index",
        "8.5",
        "one number for each offset",
        4,
        12,
        "Two tokens in one row of a grid of width 3 can be -2, -1, 0, 1 or 2 apart. How many "
        "offsets are there across, and how many down?",
        "Make a table of row differences (N, N) and one of column differences, query minus key. "
        "Move both so that they start at 0. The pair (down, across) then numbers a cell of a "
        "table with 2*gw - 1 columns.",
        "rows[:, None] - rows[None, :] + gh - 1 is down; across alike. Cell (down, across) of a "
        "table with 2*gw - 1 columns has the number down * (2*gw - 1) + across.",
    ),
    Exercise(
        "linear_attention",
        "8.6",
        "attention without a T x T matrix",
        6,
        15,
        "A product of three matrices may be computed from the left or from the right. Which order "
        "never forms a matrix of tokens by tokens?",
        "Multiply the features of the keys with the values first: (d, Tk) @ (Tk, dv). Each query "
        "then needs this matrix and one vector, the sum of all keys' features, to divide by.",
        "q, k = F.elu(q) + 1, F.elu(k) + 1. Above the line: q @ (k.transpose(-2, -1) @ v). Below "
        "it: q times k.sum(dim=-2), summed over d, with an axis kept so that it divides every "
        "column.",
    ),
    Exercise(
        "crossing_tokens",
        "8.7",
        "where the counts cross",
        1,
        4,
        "List the two products of each kind of attention with the shapes of their factors.",
        "Softmax attention: (T, d) @ (d, T) and (T, T) @ (T, d). Linear attention: (d, T) @ (T, "
        "d) and (T, d) @ (d, d). Set the two sums equal.",
        "2*T*T*d on one side, 2*T*d*d on the other: divide both by 2*T*d.",
        kind="value",
    ),
    Exercise(
        "prune_tokens",
        "8.8",
        "drop what nobody looks at",
        5,
        12,
        "topk gives places in cls_attention. Where does the same patch stand in tokens?",
        "Take the places of the keep largest weights in each row, sort them, add 1, and put place "
        "0 in front. Then collect these tokens, in every image its own.",
        "cls_attention.topk(keep, dim=-1).indices.sort(dim=-1).values + 1 are the places. "
        "gather(1, ...) wants an index as wide as its result: places[:, :, None].expand(-1, -1, "
        "D).",
    ),
    Exercise(
        "merge_tokens",
        "8.9",
        "merge what is alike",
        8,
        30,
        "Write it for one image first, with a loop over the tokens that leave. A loop over the "
        "batch is a right answer.",
        "Patches 0, 2, 4, ... stand at places 1, 3, 5, ... of the sequence. Scale the keys to "
        "length 1, multiply the even-placed with the odd-placed ones, and take the largest entry "
        "of each row: how similar, and who. The merge rows with the largest entries leave.",
        "A target table (B, T) says where each token goes: to itself, or 2 * i + 1 to 2 * partner "
        "+ 2. scatter_add of tokens * sizes and of sizes along it, keep the places that stay, "
        "divide. The class token is copied.",
    ),
    Exercise(
        "packing_mask",
        "8.10",
        "several images, one sequence",
        3,
        6,
        "Write under each token the number of its image. Which pairs may look at each other?",
        "For lengths [1, 2] the numbers are 0, 1, 1. The mask compares this row with itself, once "
        "as a column.",
        "torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)) writes the numbers.",
    ),
    # --- 09_transfer ------------------------------------------------------------------------
    Exercise(
        "convert_torchvision_weights",
        "9.1",
        "other names for the same weights",
        4,
        12,
        "Print both lists of names side by side, without the numbers of the blocks. Each name of "
        "theirs has one of ours with the same shape.",
        "Go through the pairs (name, tensor) and build a new dict. Most of the work is "
        "str.replace with a table of short pieces: ln_1 is norm1, mlp.0 is mlp.fc1.",
        'Pieces: "encoder.layers.encoder_layer_" is "blocks.", "self_attention.in_proj_" is '
        '"attn.qkv." (the underscore becomes a dot), "encoder.ln" is "norm", "heads.head" is '
        '"head". The tensors stay as they are.',
    ),
    Exercise(
        "interpolate_positions",
        "9.2",
        "positions for another image size",
        6,
        15,
        "Which rows of pos_embed stand for places? Only those may be stretched. And a stretch "
        "needs two directions: what shape shows them?",
        "Split the prefix off. Fold the other rows into a square picture with D channels, let "
        "F.interpolate resize it, and go the same way back.",
        "reshape(1, side, side, D), permute(0, 3, 1, 2), F.interpolate(..., size=new_grid_size, "
        'mode="bicubic"), then flatten(2).transpose(1, 2), and cat behind the prefix.',
    ),
    Exercise(
        "layerwise_lr_groups",
        "9.3",
        "small steps below, large ones above",
        6,
        15,
        "Write the exponent of decay beside each part of a model with two blocks: head, norm, "
        "block 1, block 0, patch embedding.",
        "The exponents are 0, 0, 1, 2, 3. The name of a parameter says where it belongs: its "
        "first part, and for blocks the number behind the first dot.",
        'for name, parameter in model.named_parameters(): name.split(".") gives the parts. Block '
        "i has the exponent L - i. What is neither block, norm nor head has L + 1.",
    ),
    Exercise(
        "LoRALinear",
        "9.4",
        "learn beside a frozen layer",
        6,
        15,
        "forward is one line: two paths that start from x, and a sum. For merged, ask which "
        "matrix does what up(down(x)) does.",
        "up(down(x)) is x @ down.weight.T @ up.weight.T, so its matrix is up.weight @ "
        "down.weight, of the shape of linear.weight.",
        "merged: a new nn.Linear of the same sizes (a bias if linear has one). Under "
        "torch.no_grad() copy linear.weight + alpha / rank * (up.weight @ down.weight) into its "
        "weight, and copy the bias.",
        kind="class",
    ),
    Exercise(
        "lora_parameters",
        "9.5",
        "how little learns",
        1,
        4,
        "How many inputs and outputs does the qkv layer of ViT-B/16 have? Which sizes have down "
        "and up?",
        "down is (rank, 768) and up is (3 * 768, rank). Twelve blocks have one pair each.",
        "Build LoRALinear(nn.Linear(768, 3 * 768), rank=8, alpha=8), add up p.numel() of what has "
        "requires_grad, and multiply by 12.",
        kind="value",
    ),
    Exercise(
        "clip_loss",
        "9.6",
        "which text belongs to which image?",
        4,
        10,
        "Fill a (B, B) table: row i compares image i with every text. Which entry of the row "
        "should win? And what does a column ask?",
        "Normalise both, multiply, divide by the temperature. A row is a classification with B "
        "classes, and the right class of row i is i. The columns are the same question from the "
        "texts.",
        "logits = image @ text.T / temperature; labels = torch.arange(B); the mean of "
        "F.cross_entropy(logits, labels) and F.cross_entropy(logits.T, labels).",
    ),
    Exercise(
        "sigmoid_contrastive_loss",
        "9.7",
        "each pair by itself",
        4,
        10,
        "Every cell of the (B, B) table is now a question with two answers: do these two belong "
        "together? How many cells say yes?",
        "Make a table of signs, +1 on the diagonal and -1 elsewhere. The price of a cell is "
        "-logsigmoid(sign * logit). Add all prices up and divide by B.",
        "signs = 2 * torch.eye(B) - 1 (dtype and device of the logits), then -F.logsigmoid(signs "
        "* logits).sum() / B.",
    ),
    Exercise(
        "blind_losses",
        "9.8",
        "the price of knowing nothing",
        2,
        5,
        "Features whose cosines are all 0 are easy to make: the first 64 rows of torch.eye(128) "
        "for the images, the last 64 for the texts.",
        "Call both of your functions on them. The cosines are 0, so temperature and scale do not "
        "matter.",
        "(clip_loss(a, b, 1.0), sigmoid_contrastive_loss(a, b, 10.0, 0.0), "
        "sigmoid_contrastive_loss(a, b, 10.0, -10.0)) with a = torch.eye(128)[:64], b = "
        "torch.eye(128)[64:].",
        kind="value",
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
