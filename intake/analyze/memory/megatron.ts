/** The transformer that Megatron-LM builds from its options. Names and defaults: Megatron-LM, `megatron/training/arguments.py`. */
import type { Facts } from '../facts'
import { megatronOption } from '../options/megatron'
import { constantOf, numberOf, textOf } from '../values'
import type { Interval } from './arithmetic'
import type { Transformer } from './published-models'

export interface MegatronModel {
  transformer: Transformer
  /** Of the whole model. */
  parameters: number
  /** On one of the GPUs that share it: the first and last stage of a pipeline have the embeddings. */
  perGpu: Interval
  /** GPUs that share each layer, and stages of the pipeline. */
  tensorWays: number
  pipelineStages: number
}

interface Sizes {
  transformer: Transformer
  /** Widths of all queries, and of all keys. */
  queries: number
  keys: number
  hasBias: boolean
  /** Parameters of a normalization for each element of its width. */
  norm: number
  positions: number
  /** Matrices as large as the vocabulary: one, unless the output layer has its own. */
  vocabularies: number
}

/** GPT-2's tokenizer, if no vocabulary is given otherwise. */
const VOCABULARIES: Readonly<Record<string, number>> = { GPT2BPETokenizer: 50257 }

/** Of a program that trains with Megatron-LM; `null` if its options do not give all sizes, or experts share the work. */
export function megatronModel({ run, training }: Facts): MegatronModel | null | undefined {
  if (!training.some(({ engine }) => engine === 'megatron')) return undefined
  const get = (key: string): number | undefined => numberOf(megatronOption(run, key))
  const isOn = (key: string): boolean => constantOf(megatronOption(run, key)) === true
  const text = (key: string): string | undefined => textOf(megatronOption(run, key))
  const [layers, width, heads] = [get('num_layers'), get('hidden_size'), get('num_attention_heads')]
  const words = get('vocab_size') ?? VOCABULARIES[text('tokenizer_type') ?? '']
  if (layers === undefined || width === undefined || heads === undefined || words === undefined) return null
  if (megatronOption(run, 'num_experts') !== undefined) return null
  const tensorWays = get('tensor_model_parallel_size') ?? 1
  const pipelineStages = get('pipeline_model_parallel_size') ?? 1
  const isGated = isOn('swiglu')
  const step = (get('make_vocab_size_divisible_by') ?? 128) * tensorWays
  const inner = get('ffn_hidden_size') ?? (isGated ? Math.floor((4 * width * 2) / 3 / 64) * 64 : 4 * width)
  const head = get('kv_channels') ?? width / heads
  const isRotary = isOn('use_rotary_position_embeddings') || text('position_embedding_type') === 'rope'
  const sizes: Sizes = {
    transformer: {
      ...{ layers, width, heads, inner, vocabulary: Math.ceil(words / step) * step, isGated },
    },
    queries: head * heads,
    keys: head * (isOn('group_query_attention') ? (get('num_query_groups') ?? 1) : heads),
    hasBias: !isOn('disable_bias_linear'),
    norm: text('normalization') === 'RMSNorm' ? 1 : 2,
    positions: isRotary ? 0 : (get('max_position_embeddings') ?? get('seq_length') ?? 0),
    vocabularies: isOn('untie_embeddings_and_output_weights') ? 2 : 1,
  }
  return {
    transformer: sizes.transformer,
    tensorWays,
    pipelineStages,
    ...counts(sizes, { tensorWays, pipelineStages }),
  }
}

/** Korthikanti et al. 2022, section 4.2: GPUs share the matrices of a layer; each has its normalizations, and the biases of what they add up. */
function counts(
  { transformer, queries, keys, hasBias, norm, positions, vocabularies }: Sizes,
  { tensorWays, pipelineStages }: { tensorWays: number; pipelineStages: number },
): Pick<MegatronModel, 'parameters' | 'perGpu'> {
  const { layers, width, inner, vocabulary, isGated } = transformer
  const [bias, up] = [hasBias ? 1 : 0, isGated === true ? 2 : 1]
  const shared = (width + bias) * (queries + 2 * keys + up * inner) + width * (queries + inner)
  const own = 2 * width * bias + 2 * norm * width
  const embeddings = (ways: number): number => (vocabulary * vocabularies * width) / ways + positions * width
  const low = (layers / pipelineStages) * (shared / tensorWays + own)
  return {
    parameters: layers * (shared + own) + norm * width + embeddings(1),
    perGpu: {
      low: low + (pipelineStages === 1 ? norm * width + embeddings(tensorWays) : 0),
      high: low + norm * width + embeddings(tensorWays),
    },
  }
}
