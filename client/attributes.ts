import { defineSearchAttributeKey } from '@temporalio/common'
import { SEARCH_ATTRIBUTES } from '../core/queues'

const keyOf = (name: keyof typeof SEARCH_ATTRIBUTES) =>
  defineSearchAttributeKey(SEARCH_ATTRIBUTES[name], 'KEYWORD')

/** The search attributes as the SDK names them. */
export const ATTRIBUTE_KEYS = {
  name: keyOf('name'),
  owner: keyOf('owner'),
  state: keyOf('state'),
  reason: keyOf('reason'),
  backend: keyOf('backend'),
}
