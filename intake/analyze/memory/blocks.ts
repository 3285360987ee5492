/** What layers that are whole networks keep: attention, transformers, recurrent layers. */
import { argument } from '../facts'
import { constantOf, type CallEvent, type Value } from '../values'
import type { Tensors } from './arithmetic'
import { directionsOf, numberGiven } from './layers'
import type { Shape } from './shapes'

type Inside = Pick<Tensors, 'plain' | 'full' | 'masks'>

/** Elements inside a block, without its input. */
export function insideOf(kind: string, made: CallEvent, input: Shape): Inside | undefined {
  const [batch = 1, length = 1] = input
  const tokens = batch * length
  const get = (name: string, at: number, fallback?: number): number | undefined =>
    numberGiven(made, name, { at, ...(fallback !== undefined && { fallback }) })
  if (kind === 'TransformerEncoder' || kind === 'TransformerDecoder') {
    const layer = argument(made, kind === 'TransformerEncoder' ? 'encoder_layer' : 'decoder_layer', 0)
    const count = get('num_layers', 1)
    const each = layer?.kind === 'made' ? insideOf(`${kind}Layer`, layer.call, input) : undefined
    return each === undefined || count === undefined ? undefined : multiplied(each, count)
  }
  if (kind === 'Transformer') {
    const [encoders, decoders] = [get('num_encoder_layers', 2, 6), get('num_decoder_layers', 3, 6)]
    const of = { inner: get('dim_feedforward', 4, 2048), drops: argument(made, 'dropout', 5), input }
    const [width, heads] = [get('d_model', 0, 512), get('nhead', 1, 8)]
    const encoder = transformerLayer({ ...of, width, heads, attentions: 1 })
    const decoder = transformerLayer({ ...of, width, heads, attentions: 2 })
    if (encoder === undefined || decoder === undefined || encoders === undefined || decoders === undefined)
      return undefined
    const [all, others] = [multiplied(encoder, encoders), multiplied(decoder, decoders)]
    return { plain: all.plain + others.plain, full: all.full + others.full, masks: all.masks + others.masks }
  }
  if (kind === 'LSTM' || kind === 'GRU' || kind === 'RNN') {
    const hidden = get('hidden_size', 1)
    const layers = get('num_layers', 2, 1)
    if (hidden === undefined || layers === undefined) return undefined
    // Per step the gates after their activation, the states, their hyperbolic tangent and the input of the next layer.
    const states = { LSTM: 8, GRU: 7, RNN: 2 }[kind]
    return { plain: tokens * hidden * states * layers * directionsOf(made), full: 0, masks: 0 }
  }
  const width = kind === 'MultiheadAttention' ? get('embed_dim', 0) : get('d_model', 0)
  const heads = kind === 'MultiheadAttention' ? get('num_heads', 1) : get('nhead', 1)
  if (width === undefined || heads === undefined) return undefined
  const scores = batch * heads * length * length
  if (kind === 'MultiheadAttention') return { plain: 5 * tokens * width, full: scores, masks: 0 }
  return transformerLayer({
    ...{ inner: get('dim_feedforward', 2, 2048), drops: argument(made, 'dropout', 3), input, width, heads },
    attentions: kind === 'TransformerDecoderLayer' ? 2 : 1,
  })
}

interface TransformerLayer {
  input: Shape
  width: number | undefined
  heads: number | undefined
  inner: number | undefined
  drops: Value | undefined
  /** Two where it also attends to the result of an encoder. */
  attentions: number
}

function transformerLayer({
  input: [batch = 1, length = 1],
  width,
  heads,
  inner,
  drops,
  attentions,
}: TransformerLayer): Inside | undefined {
  if (width === undefined || heads === undefined || inner === undefined) return undefined
  const tokens = batch * length
  const scores = attentions * batch * heads * length * length
  const drop = constantOf(drops) === 0 ? 0 : 1
  return {
    plain: tokens * ((2 + 6 * attentions) * width + 2 * inner) + drop * scores,
    full: scores,
    masks: drop * (tokens * ((1 + attentions) * width + inner) + scores),
  }
}

const multiplied = ({ plain, full, masks }: Inside, by: number): Inside => ({
  plain: plain * by,
  full: full * by,
  masks: masks * by,
})
