/**
 * The time of a training run on A100 GPUs. A training step needs three times the multiplications of its forward pass (one for the pass, two for the
 * gradients of inputs and weights), each with an addition: 6 operations for each parameter and position of a transformer (Kaplan et al. 2020, "Scaling
 * Laws for Neural Language Models", section 2.1).
 */
import type { Interval, Precision } from './arithmetic'
import type { Transformer } from './published-models'

/** The GPU that times are for. */
export const REFERENCE = 'A100'

/**
 * Operations per second that training reaches. In half precision, 8 to 60 % of the 312 tera-operations of the data sheet: 30 to 60 % in large models
 * (Chowdhery et al. 2022, "PaLM", table 3), less in small ones. In fp32, from 15 % of 19.5 to half of the 156 of TF32, which PyTorch uses for convolutions.
 */
const PER_SECOND: Readonly<Record<'half' | 'full', Interval>> = {
  half: { low: 0.08 * 312e12, high: 0.6 * 312e12 },
  full: { low: 0.15 * 19.5e12, high: 0.5 * 156e12 },
}

/** Seconds that a step takes however small its work is: starts of kernels, data, logs. */
const STEP_OVERHEAD = { low: 0.002, high: 0.06 }

/** Operations of a day on the CPUs of one machine: a training reaches about 0.5e12 a second. */
export const OPERATIONS_OF_DAY = 24 * 3600 * 0.5e12

export interface RunWork {
  /** Multiplications of a forward pass of one sample. */
  multiplications: number
  /** Samples that each GPU processes in the whole run. */
  samples: Interval
  /** Samples that it processes at a time. */
  batch: number
  precision: Precision
  /** Whether the forward pass is computed again in the backward pass. */
  recomputes: boolean
}

/** Seconds of a run. */
export function secondsOf({ multiplications, samples, batch, precision, recomputes }: RunWork): Interval {
  const operations = 2 * multiplications * (recomputes ? 4 : 3) * batch
  const speed = PER_SECOND[precision === 'fp32' ? 'full' : 'half']
  const step = {
    low: Math.max(operations / speed.high, STEP_OVERHEAD.low),
    high: operations / speed.low + STEP_OVERHEAD.high,
  }
  return { low: (samples.low / batch) * step.low, high: (samples.high / batch) * step.high }
}

/** Multiplications of a forward pass of one sequence: each parameter once a position, and the scores of attention. */
export function transformerMultiplications(
  { layers, width }: Transformer,
  { parameters, length }: { parameters: number; length: number },
): number {
  return parameters * length + 2 * layers * width * length ** 2
}

/** Samples for training in published data sets, as their authors state them. */
export const DATA_SAMPLES: Readonly<Record<string, number>> = {
  MNIST: 60_000,
  FashionMNIST: 60_000,
  KMNIST: 60_000,
  mnist: 60_000,
  fashion_mnist: 60_000,
  CIFAR10: 50_000,
  CIFAR100: 50_000,
  cifar10: 50_000,
  cifar100: 50_000,
  SVHN: 73_257,
  STL10: 5_000,
  Food101: 75_750,
  food101: 75_750,
  ImageNet: 1_281_167,
  'imagenet-1k': 1_281_167,
  imagenet2012: 1_281_167,
  CocoDetection: 118_287,
  Places365: 1_803_460,
  cnn_dailymail: 287_113,
  imdb: 25_000,
  ag_news: 120_000,
  squad: 87_599,
  yelp_review_full: 650_000,
  'tatsu-lab/alpaca': 52_002,
  'lambdalabs/pokemon-blip-captions': 833,
  'huggan/flowers-102-categories': 7_169,
}
