/** Transformers that a program configures with a class of the library Transformers. */
import { argument } from '../facts'
import { constantOf, constructionOf, numberOf, type CallEvent } from '../values'
import { transformerParameters } from './arithmetic'
import type { PublishedModel, Transformer } from './published-models'

type Keys = Record<'layers' | 'width' | 'heads' | 'inner' | 'vocabulary', string>

const USUAL: Keys = {
  layers: 'num_hidden_layers',
  width: 'hidden_size',
  heads: 'num_attention_heads',
  inner: 'intermediate_size',
  vocabulary: 'vocab_size',
}
const OF_GPT2: Keys = {
  layers: 'n_layer',
  width: 'n_embd',
  heads: 'n_head',
  inner: 'n_inner',
  vocabulary: 'vocab_size',
}

/** Configurations of transformers, with the values of their documentation for what is left out. */
const CONFIGURATIONS: Readonly<Record<string, { keys: Keys; usual: Transformer }>> = {
  GPT2Config: {
    keys: OF_GPT2,
    usual: { layers: 12, width: 768, heads: 12, inner: 0, vocabulary: 50257, composesGelu: true },
  },
  BertConfig: { keys: USUAL, usual: { layers: 12, width: 768, heads: 12, inner: 3072, vocabulary: 30522 } },
  RobertaConfig: {
    keys: USUAL,
    usual: { layers: 12, width: 768, heads: 12, inner: 3072, vocabulary: 50265 },
  },
  ViTConfig: {
    keys: USUAL,
    usual: { layers: 12, width: 768, heads: 12, inner: 3072, vocabulary: 0, length: 197 },
  },
  LlamaConfig: {
    keys: USUAL,
    usual: { layers: 32, width: 4096, heads: 32, inner: 11008, vocabulary: 32000, isGated: true },
  },
  MistralConfig: {
    keys: USUAL,
    usual: { layers: 32, width: 4096, heads: 32, inner: 14336, vocabulary: 32000, isGated: true },
  },
  GPTNeoXConfig: {
    keys: USUAL,
    usual: { layers: 44, width: 6144, heads: 64, inner: 24576, vocabulary: 50432 },
  },
}

/** `GPT2LMHeadModel(GPT2Config(n_layer=6))`, `AutoModel.from_config(config)` */
export function configuredModel(event: CallEvent): PublishedModel | undefined {
  if (!event.name.startsWith('transformers.') || event.method.endsWith('Config')) return undefined
  const config = constructionOf(argument(event, 'config', 0))
  const known = config === undefined ? undefined : CONFIGURATIONS[config.method]
  if (known === undefined || config === undefined) return undefined
  const { keys, usual } = known
  const get = (key: keyof Keys): number | undefined => {
    const given = config.named.get(keys[key])
    return given === undefined || constantOf(given) === null ? usual[key] : numberOf(given)
  }
  const [layers, width, heads, vocabulary] = [get('layers'), get('width'), get('heads'), get('vocabulary')]
  const inner = get('inner')
  if (layers === undefined || width === undefined || heads === undefined) return undefined
  if (vocabulary === undefined || inner === undefined) return undefined
  const transformer = { ...usual, layers, width, heads, vocabulary, inner: inner === 0 ? 4 * width : inner }
  return { parameters: transformerParameters(transformer), transformer }
}
