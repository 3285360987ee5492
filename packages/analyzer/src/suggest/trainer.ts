/** The change of a program whose loop is the `Trainer` of Hugging Face, which saves its random state and the place in the data. */
import type { Facts } from '../facts'
import { trainingArguments } from '../findings/implied-saves'
import { childAt, parts, type SyntaxNode } from '../syntax'
import { constantOf, textOf, type CallEvent } from '../values'
import { refuseCall } from './refusal'
import { Writing } from './writing'

/** The edits of each file, and when the changed program saves. */
export function writeTrainer(facts: Facts): { writings: Writing[]; saves: string } {
  const [{ event }, another] = facts.training as [
    Facts['training'][number],
    Facts['training'][number] | undefined,
  ]
  if (another !== undefined)
    refuseCall(another.event, 'trains a second time; only a program that trains once can be changed safely')
  const [train] = [listOf(event)]
  if (parts(train).length > 0) refuseCall(event, 'is given arguments already, which decide where it resumes')
  const settings = trainingArguments(event)
  const first = settings?.node.type === 'call' ? settings : undefined
  if (first === undefined || !first.name.endsWith('TrainingArguments'))
    refuseCall(
      event,
      'has settings that are not written in the program: pass --output_dir and save_strategy to it',
    )
  for (const call of facts.events)
    if (call.method === 'EarlyStoppingCallback')
      refuseCall(call, 'counts rounds without progress, which older checkpoints do not hold')
  const writings = new Map<string, Writing>()
  const writingOf = ({ file }: CallEvent): Writing => {
    const writing = writings.get(file.path) ?? new Writing(file)
    writings.set(file.path, writing)
    return writing
  }
  const saves = writeSettings(writingOf(first), first)
  const writing = writingOf(event)
  const os = writing.module('os')
  writing.insertAt(train.end - 1, `resume_from_checkpoint=${os}.environ.get("CRUCIBLE_RESUME_FROM")`)
  return { writings: [...writings.values()], saves }
}

const listOf = ({ node }: CallEvent): SyntaxNode => childAt(node, 'arguments')!

function writeSettings(writing: Writing, event: CallEvent): string {
  const given = parts(listOf(event))
  const named = (name: string): SyntaxNode | undefined =>
    given.find((each) => each.type === 'keyword_argument' && childAt(each, 'name')!.text === name)
  if (given.some(({ type }) => type.endsWith('_splat'))) refuseCall(event, 'takes settings from a dictionary')
  if (
    constantOf(event.named.get('save_only_model')) !== undefined &&
    constantOf(event.named.get('save_only_model')) !== false
  )
    refuseCall(event, 'saves the model without its optimizer (save_only_model)')
  const place = named('output_dir')
  const folder = place === undefined ? given[0] : childAt(place, 'value')
  if (folder === undefined || folder.type === 'keyword_argument')
    refuseCall(event, 'does not say where it saves (output_dir)')
  const strategy = named('save_strategy')
  const value = textOf(event.named.get('save_strategy'))
  if (strategy !== undefined && value === undefined)
    refuseCall(event, 'saves at times that are known only at run time (save_strategy)')
  const os = writing.module('os')
  writing.replace(folder, `${os}.environ.get("CRUCIBLE_CHECKPOINT_DIR", ${folder.text})`)
  if (strategy !== undefined && value === 'no') {
    writing.replace(childAt(strategy, 'value')!, '"epoch"')
    return 'after each epoch'
  }
  return value === 'epoch' ? 'after each epoch' : 'as its save_steps say (500 by default)'
}
