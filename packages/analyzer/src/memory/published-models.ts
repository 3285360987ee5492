/** Published models that scripts name: their parameters, and what a training step of them keeps in memory. */

/** A stack of transformer blocks. */
export interface Transformer {
  layers: number
  width: number
  heads: number
  /** Width of the feed-forward part. */
  inner: number
  vocabulary: number
  /** Whether the feed-forward part has a gate: three matrices in place of two. */
  isGated?: boolean
  /** Whether GELU consists of several operations, and each keeps a tensor. */
  composesGelu?: boolean
  /** Positions that an input always has, such as the patches of a picture. */
  length?: number
}

/** A network for pictures. */
export interface Pictures {
  /** MiB per picture in fp32 that grow with its area. */
  keptMiB: number
  /** MiB per picture in fp32 that grow with the square of its area: attention between all its places. */
  attentionMiB?: number
  /** Thousand million multiplications of a forward pass. */
  gigaMultiplications?: number
  /** Pixels of a side of the picture that the figures are for. */
  side: number
}

export interface PublishedModel {
  parameters: number
  transformer?: Transformer
  pictures?: Pictures
  /** Inputs of the last layer, which has a result for each of the 1,000 classes of ImageNet. */
  headWidth?: number
}

type Row = [
  name: string,
  millions: number,
  layers: number,
  width: number,
  heads: number,
  inner: number,
  vocabulary: number,
]

/**
 * Millions of parameters and shapes, entered by hand from what the authors publish (papers, and `config.json` on the Hugging Face Hub). For an
 * encoder with a decoder, the layers of both.
 */
const TRANSFORMERS: readonly Row[] = [
  ['gpt2', 124.439808, 12, 768, 12, 3072, 50257],
  ['gpt2-medium', 354.823168, 24, 1024, 16, 4096, 50257],
  ['gpt2-large', 774.03008, 36, 1280, 20, 5120, 50257],
  ['gpt2-xl', 1557.6112, 48, 1600, 25, 6400, 50257],
  ['distilgpt2', 81.912576, 6, 768, 12, 3072, 50257],
  ['bert-base-uncased', 109.48224, 12, 768, 12, 3072, 30522],
  ['bert-base-cased', 108.310272, 12, 768, 12, 3072, 28996],
  ['bert-large-uncased', 335.141888, 24, 1024, 16, 4096, 30522],
  ['distilbert-base-uncased', 66.36288, 6, 768, 12, 3072, 30522],
  ['roberta-base', 124.645632, 12, 768, 12, 3072, 50265],
  ['roberta-large', 355.35984, 24, 1024, 16, 4096, 50265],
  ['xlm-roberta-base', 278.04, 12, 768, 12, 3072, 250002],
  ['deberta-v3-base', 184.4, 12, 768, 12, 3072, 128100],
  ['deberta-v3-large', 434.0, 24, 1024, 16, 4096, 128100],
  ['t5-small', 60.506624, 12, 512, 8, 2048, 32128],
  ['t5-base', 222.903552, 24, 768, 12, 3072, 32128],
  ['t5-large', 737.668096, 48, 1024, 16, 4096, 32128],
  ['t5-3b', 2851.598336, 48, 1024, 32, 16384, 32128],
  ['bart-base', 139.42, 12, 768, 12, 3072, 50265],
  ['bart-large', 406.29, 24, 1024, 16, 4096, 50265],
  ['opt-125m', 125.24, 12, 768, 12, 3072, 50272],
  ['opt-350m', 331.2, 24, 1024, 16, 4096, 50272],
  ['opt-1.3b', 1315.76, 24, 2048, 32, 8192, 50272],
  ['opt-2.7b', 2651.6, 32, 2560, 32, 10240, 50272],
  ['opt-6.7b', 6658.47, 32, 4096, 32, 16384, 50272],
  ['pythia-70m', 70.43, 6, 512, 8, 2048, 50304],
  ['pythia-160m', 162.32, 12, 768, 12, 3072, 50304],
  ['pythia-410m', 405.33, 24, 1024, 16, 4096, 50304],
  ['pythia-1b', 1011.78, 16, 2048, 8, 8192, 50304],
  ['pythia-1.4b', 1414.65, 24, 2048, 16, 8192, 50304],
  ['pythia-2.8b', 2775.21, 32, 2560, 32, 10240, 50304],
  ['pythia-6.9b', 6857.3, 32, 4096, 32, 16384, 50432],
  ['gpt-neo-125m', 125.2, 12, 768, 12, 3072, 50257],
  ['gpt-neo-1.3b', 1315.58, 24, 2048, 16, 8192, 50257],
  ['gpt-neo-2.7b', 2651.31, 32, 2560, 20, 10240, 50257],
  ['gpt-j-6b', 6050.88, 28, 4096, 16, 16384, 50400],
  ['gpt-neox-20b', 20554.57, 44, 6144, 64, 24576, 50432],
  ['phi-1_5', 1418.27, 24, 2048, 32, 8192, 51200],
  ['phi-2', 2779.68, 32, 2560, 32, 10240, 51200],
  ['bloom-560m', 559.21, 24, 1024, 16, 4096, 250880],
  ['bloom-7b1', 7069.02, 30, 4096, 32, 16384, 250880],
  ['falcon-7b', 6921.72, 32, 4544, 71, 18176, 65024],
]

/** As above, with a gate in the feed-forward part. */
const GATED_TRANSFORMERS: readonly Row[] = [
  ['llama-2-7b', 6738.415616, 32, 4096, 32, 11008, 32000],
  ['llama-2-13b', 13015.86, 40, 5120, 40, 13824, 32000],
  ['llama-2-70b', 68976.65, 80, 8192, 64, 28672, 32000],
  ['llama-3-8b', 8030.26, 32, 4096, 32, 14336, 128256],
  ['llama-3-70b', 70553.71, 80, 8192, 64, 28672, 128256],
  ['llama-3.2-1b', 1235.81, 16, 2048, 32, 8192, 128256],
  ['llama-3.2-3b', 3212.75, 28, 3072, 24, 8192, 128256],
  ['mistral-7b', 7241.73, 32, 4096, 32, 14336, 32000],
  ['tinyllama-1.1b', 1100.05, 22, 2048, 32, 5632, 32000],
  ['qwen2-0.5b', 494.03, 24, 896, 14, 4864, 151936],
  ['qwen2-1.5b', 1543.71, 28, 1536, 12, 8960, 151936],
  ['qwen2-7b', 7615.62, 28, 3584, 28, 18944, 152064],
  ['gemma-2b', 2506.17, 18, 2048, 8, 16384, 256000],
  ['gemma-7b', 8537.68, 28, 3072, 16, 24576, 256000],
  ['flan-t5-small', 76.96, 16, 512, 6, 1024, 32128],
  ['flan-t5-base', 247.58, 24, 768, 12, 2048, 32128],
  ['flan-t5-large', 783.15, 48, 1024, 16, 2816, 32128],
]

/** Of a fixed number of positions: pictures in patches, and sound of 30 seconds (the encoder's 1,500 and the decoder's 448, on average). */
const FIXED_LENGTHS: readonly [...Row, length: number][] = [
  ['vit-base-patch16-224', 86.39, 12, 768, 12, 3072, 0, 197],
  ['vit-base-patch16-224-in21k', 86.39, 12, 768, 12, 3072, 0, 197],
  ['vit-large-patch16-224', 303.3, 24, 1024, 16, 4096, 0, 197],
  ['vit_base_patch16_224', 86.57, 12, 768, 12, 3072, 0, 197],
  ['vit_small_patch16_224', 22.05, 12, 384, 6, 1536, 0, 197],
  ['vit_large_patch16_224', 304.33, 24, 1024, 16, 4096, 0, 197],
  ['deit_small_patch16_224', 22.05, 12, 384, 6, 1536, 0, 197],
  ['whisper-tiny', 37.76, 8, 384, 6, 1536, 51865, 1000],
  ['whisper-base', 72.59, 12, 512, 8, 2048, 51865, 1000],
  ['whisper-small', 241.73, 24, 768, 12, 3072, 51865, 1000],
  ['whisper-medium', 763.86, 48, 1024, 16, 4096, 51865, 1000],
  ['whisper-large-v3', 1543.49, 64, 1280, 20, 5120, 51866, 1000],
]

/**
 * Parameters, MiB per picture that autograd keeps in fp32, and inputs of the last layer: measured with saved-tensor hooks on torchvision 0.14.1 with PyTorch 1.13.0 on its
 * meta device, 2026-11-25 (`packages/analyzer/test/published/count.py`). Multiplications as in
 * torchvision's documentation (`GFLOPS` of the weights).
 */
const CONVOLUTIONAL: readonly [
  name: string,
  parameters: number,
  keptMiB: number,
  headWidth: number,
  gigaMultiplications: number,
  side?: number,
][] = [
  ['alexnet', 61100840, 3.6, 4096, 0.71],
  ['vgg11', 132863336, 46.6, 4096, 7.61],
  ['vgg16', 138357544, 70, 4096, 15.47],
  ['vgg19', 143667240, 74.9, 4096, 19.63],
  ['resnet18', 11689512, 21.2, 512, 1.81],
  ['resnet34', 21797672, 30.8, 512, 3.66],
  ['resnet50', 25557032, 82, 2048, 4.09],
  ['resnet101', 44549160, 121.2, 2048, 7.8],
  ['resnet152', 60192808, 169.5, 2048, 11.51],
  ['wide_resnet50_2', 68883240, 107.1, 2048, 11.4],
  ['resnext50_32x4d', 25028904, 107.1, 2048, 4.23],
  ['densenet121', 7978856, 124.5, 1024, 2.83],
  ['squeezenet1_1', 1235496, 20.1, 512, 0.35],
  ['mobilenet_v2', 3504872, 74.9, 1280, 0.3],
  ['mobilenet_v3_small', 2542856, 15.6, 1024, 0.06],
  ['mobilenet_v3_large', 5483032, 42.3, 1280, 0.22],
  ['shufflenet_v2_x1_0', 2278604, 19.5, 1024, 0.14],
  ['efficientnet_b0', 5288548, 84.4, 1280, 0.39],
  ['efficientnet_b4', 19341616, 215.1, 1792, 4.39],
  ['efficientnet_v2_s', 21458488, 147.5, 1280, 8.37],
  ['regnet_y_8gf', 39381472, 163.9, 2016, 8.47],
  ['convnext_tiny', 28589128, 104.2, 768, 4.46],
  ['convnext_base', 88591464, 221.5, 1024, 15.36],
  ['vit_b_16', 86567656, 133.9, 768, 17.56],
  ['vit_b_32', 88224232, 30.4, 768, 4.41],
  ['vit_l_16', 304326632, 354.5, 1024, 61.55],
  ['swin_t', 28288354, 101.8, 768, 4.49],
  ['swin_b', 87768224, 216.1, 1024, 15.43],
  ['googlenet', 13004888, 46.3, 1024, 1.5],
  ['inception_v3', 27161264, 94.3, 2048, 5.71, 299],
]

/** Models with the activation `gelu_new` in their `config.json`. */
const COMPOSES_GELU = /^(?:gpt2|distilgpt2|gpt-neo-|gpt-j-|phi-|flan-t5-)/

const MILLION = 1e6

function transformerOf(
  [name, millions, layers, width, heads, inner, vocabulary]: Row,
  more: Partial<Transformer> = {},
): [string, PublishedModel] {
  const composesGelu = COMPOSES_GELU.test(name)
  const transformer = { layers, width, heads, inner, vocabulary, composesGelu, ...more }
  return [name, { parameters: Math.round(millions * MILLION), transformer }]
}

const MODELS: ReadonlyMap<string, PublishedModel> = new Map([
  ...TRANSFORMERS.map((row) => transformerOf(row)),
  ...GATED_TRANSFORMERS.map((row) => transformerOf(row, { isGated: true })),
  ...FIXED_LENGTHS.map(([name, millions, layers, width, heads, inner, vocabulary, length]) =>
    transformerOf([name, millions, layers, width, heads, inner, vocabulary], { length }),
  ),
  ...CONVOLUTIONAL.map(
    ([name, parameters, keptMiB, headWidth, gigaMultiplications, side = 224]): [string, PublishedModel] => [
      name,
      { parameters, headWidth, pictures: { keptMiB, side, gigaMultiplications } },
    ],
  ),
])

/**
 * Parts of Stable Diffusion 1: parameters, and MiB per picture of 512 pixels that autograd keeps in fp32. Measured as above, on diffusers 0.21.4
 * with latents of 32 and 64 pixels: the part that grows with the area, and that of attention between all places.
 */
export const STABLE_DIFFUSION: Readonly<Record<string, PublishedModel>> = {
  UNet2DConditionModel: {
    parameters: 859520964,
    pictures: { keptMiB: 1877, attentionMiB: 2699, side: 512, gigaMultiplications: 339 },
  },
  FlaxUNet2DConditionModel: {
    parameters: 859520964,
    pictures: { keptMiB: 1877, attentionMiB: 2699, side: 512, gigaMultiplications: 339 },
  },
  ControlNetModel: { parameters: 361279120, pictures: { keptMiB: 843, attentionMiB: 1077, side: 512 } },
  AutoencoderKL: { parameters: 83653863 },
  FlaxAutoencoderKL: { parameters: 83653863 },
  CLIPTextModel: {
    parameters: 123060480,
    transformer: { layers: 12, width: 768, heads: 12, inner: 3072, vocabulary: 0, length: 77 },
  },
  FlaxCLIPTextModel: {
    parameters: 123060480,
    transformer: { layers: 12, width: 768, heads: 12, inner: 3072, vocabulary: 0, length: 77 },
  },
}

/** Endings of names that say nothing about the size. */
const ENDINGS = [
  '-hf',
  '-chat',
  '-instruct',
  '-it',
  '-v0.1',
  '-v0.2',
  '-v0.3',
  '-deduped',
  '-uncased',
  '-cased',
  '-lm-adapt',
  '-alpha',
  '-intermediate-step-1431k-3t',
  '-chat-v1.0',
]

/** The model of a name such as `meta-llama/Llama-2-7b-hf`; `undefined` if it is not in the table. */
export function findPublishedModel(name: string): PublishedModel | undefined {
  let bare = name.slice(name.lastIndexOf('/') + 1).toLowerCase()
  if (bare.startsWith('meta-')) bare = bare.slice('meta-'.length)
  for (;;) {
    const found = MODELS.get(bare)
    if (found !== undefined) return found
    const ending = ENDINGS.find((each) => bare.endsWith(each))
    if (ending === undefined) return undefined
    bare = bare.slice(0, -ending.length)
  }
}
