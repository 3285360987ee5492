/** Memory of an image network, scaled from measurements of the published model. */
import type { Tensors } from './arithmetic'
import type { Pictures } from './published-models'

export interface PictureUse {
  /** Pixels of a side of a picture. */
  side: number
  recomputes: boolean
  fusesAttention: boolean
  isFrozen: boolean
  /** Whether gradients pass through the second half of the network only. */
  passesHalf: boolean
  /** The end of the range that is wanted. */
  end: 'low' | 'high'
}

const ELEMENTS_PER_MIB = 2 ** 20 / 4

/** The parts of a network that are computed again at a time, of all its blocks: the largest one, and the inputs of all. */
const RECOMPUTED = { low: 0.08, high: 0.2 }

/**
 * Products with frozen weights keep no inputs. Of blocks as in Stable Diffusion, of 320 to 1,280 channels, 72 to 75 % of the elements in addition
 * attention scores stay: counted with saved-tensor hooks of PyTorch 1.13 on its meta device, 2026-11-26.
 */
const KEPT_IF_FROZEN = { low: 0.7, high: 0.75 }

/** Scores of the largest attention of Stable Diffusion 1, for a picture of 512 pixels: 8 heads, each for all pairs of 64 x 64 places. */
const LARGEST_SCORES = 8 * 64 ** 4

/** Tensors of one picture. */
export function tensorsOfPicture({ keptMiB, attentionMiB = 0, side }: Pictures, use: PictureUse): Tensors {
  const { recomputes, fusesAttention, isFrozen, passesHalf, end } = use
  const area = (use.side / side) ** 2
  const share = ELEMENTS_PER_MIB * (recomputes ? RECOMPUTED[end] : 1) * (passesHalf ? 0.5 : 1)
  const attention = fusesAttention ? 0 : attentionMiB * area ** 2
  return {
    plain: keptMiB * area * share * (isFrozen ? KEPT_IF_FROZEN[end] : 1),
    full: attention * share,
    masks: 0,
    indices: 0,
    possible: 0,
    largest: attention === 0 ? 0 : LARGEST_SCORES * area ** 2,
  }
}
