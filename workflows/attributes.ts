import { upsertSearchAttributes } from '@temporalio/workflow'
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common'
import { SEARCH_ATTRIBUTES } from '../core/queues'

type AttributeName = keyof typeof SEARCH_ATTRIBUTES
export type Attributes = Partial<Record<AttributeName, string>>

const KEYS = Object.fromEntries(
  Object.entries(SEARCH_ATTRIBUTES).map(([name, key]) => [name, defineSearchAttributeKey(key, 'KEYWORD')]),
) as Record<AttributeName, ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>>

function pairs(attributes: Attributes): { key: (typeof KEYS)[AttributeName]; value: string }[] {
  return Object.entries(attributes).map(([name, value]) => ({ key: KEYS[name as AttributeName], value }))
}

/** Sets any number of attributes with one event. */
export function setAttributes(attributes: Attributes): void {
  upsertSearchAttributes(pairs(attributes))
}

/** Returns attributes for starting a child. */
export function attributesOf(attributes: Attributes): TypedSearchAttributes {
  return new TypedSearchAttributes(pairs(attributes))
}
