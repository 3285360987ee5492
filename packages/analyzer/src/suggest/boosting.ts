/** The change of a program that boosts trees with XGBoost: its callback that saves, and the remaining rounds of an earlier model. */
import type { Facts } from '../facts'
import { memberOfClass } from '../members'
import { childAt, nodesOf, parameterName, type SourceFile, type SyntaxNode } from '../syntax'
import { alternatives, constructionOf, numberOf, textOf, type CallEvent, type Value } from '../values'
import {
  addArgument,
  addCallbacks,
  callbackCall,
  callbacksOf,
  checkWritten,
  isOwnCallback,
  isUnset,
  namedNode,
  positionalNodes,
  setArgument,
  statementOf,
} from './calls'
import { checkHooks } from './hooks'
import { isInside } from './loop'
import { checkSeeds } from './random'
import { functionsOf } from './region'
import { refuse, refuseCall } from './refusal'
import type { Writing } from './writing'

/** The call that trains, and the call that has the number of rounds and the callbacks: either the training call or the constructor. */
interface Boosting {
  train: CallEvent
  settings: CallEvent
  parameters: ReadonlyMap<string, Value>
  rounds: { name: string; position: number | undefined; default: number }
}

/** Writes both halves; answers when the changed program saves. */
export function writeBoosting(
  { facts }: { facts: Facts },
  writingOf: (source: SourceFile) => Writing,
): string {
  const boosting = boostingOf(facts)
  const { settings, train, rounds } = boosting
  checkRounds(boosting)
  checkParameters(boosting)
  checkSeeds(facts.events)
  checkHooks(facts, 'XGBoost')
  const results = facts.events.find(
    ({ method, name }) => method === 'evals_result' && name.startsWith('xgboost.'),
  )
  if (results !== undefined) refuseCall(results, ONLY_LAST)
  const saving = ownSaving(boosting)
  const writing = writingOf(settings.file)
  const os = writing.module('os')
  const xgboost = writing.module('xgboost', 'xgb')
  const names = {
    folder: writing.free('checkpoint_dir'),
    resume: writing.free('resume_from'),
    done: writing.free('rounds_done'),
  }
  const written = roundsNode(boosting)
  const count = numberOf(
    boosting.settings.named.get(rounds.name) ?? settings.positional[rounds.position ?? -1],
  )
  const interval = Math.max(
    1,
    Math.ceil((count ?? (written === undefined ? rounds.default : INTERVAL * SAVES)) / SAVES),
  )
  const { statement, siblings } = statementOf(settings.file, settings.node)
  writing.before(statement, siblings, [
    ...(saving === undefined
      ? [
          [0, `${names.folder} = ${os}.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints")`] as const,
          [0, `${os}.makedirs(${names.folder}, exist_ok=True)`] as const,
        ]
      : []),
    [0, `${names.resume} = ${os}.environ.get("CRUCIBLE_RESUME_FROM")`],
    [
      0,
      `${names.done} = ${xgboost}.Booster(model_file=${names.resume}).num_boosted_rounds() if ${names.resume} else 0`,
    ],
  ])
  const rest = `${inBrackets(written) ?? rounds.default} - ${names.done}`
  if (written === undefined) addArgument(writing, settings, `${rounds.name}=${rest}`)
  else writing.replace(written, rest)
  if (saving === undefined)
    addCallbacks(writing, settings, [
      `${xgboost}.callback.TrainingCheckPoint(${names.folder}, name="step", interval=${interval})`,
    ])
  const isNear = functionAround(train) === functionAround(settings)
  const trained = writingOf(train.file)
  setArgument(trained, train, {
    name: 'xgb_model',
    text: isNear ? names.resume : `${trained.module('os')}.environ.get("CRUCIBLE_RESUME_FROM")`,
  })
  return saving === undefined
    ? `every ${interval} rounds`
    : `at the interval of the TrainingCheckPoint at ${saving.file.path}:${saving.node.line}`
}

/** Approximate number of saves of a run, and the rounds between two saves if the total is unknown. */
const SAVES = 20
const INTERVAL = 10

function inBrackets(node: SyntaxNode | undefined): string | undefined {
  const isSimple = ['integer', 'identifier', 'attribute', 'call', 'subscript'].includes(node?.type ?? '')
  return node === undefined || isSimple ? node?.text : `(${node.text})`
}

/** The function in which a call is, or the file. */
function functionAround({ file, node }: CallEvent): SyntaxNode {
  const around = functionsOf(file.root, file).filter((each) => isInside(node, each.node))
  return around.at(-1)?.node ?? file.root
}

function boostingOf({ training }: Facts): Boosting {
  const [{ event: train }] = training as [Facts['training'][number]]
  if (!train.name.startsWith('xgboost.'))
    refuseCall(train, 'trains in one call of a library that cannot be entered in the middle')
  if (train.loops.length > 0) refuseCall(train, 'trains again in each round of a loop')
  checkWritten(train)
  if (!isUnset(train.named.get('xgb_model'))) refuseCall(train, 'continues a model already (xgb_model)')
  if (train.name === 'xgboost.train') {
    const params = train.positional[0] ?? train.named.get('params')
    if (params?.kind !== 'dict') refuseCall(train, 'has parameters that are not written in the program')
    return {
      train,
      settings: train,
      parameters: params.entries,
      rounds: { name: 'num_boost_round', position: 2, default: 10 },
    }
  }
  const settings = constructionOf(train.receiver)
  const isKnown = ['XGBClassifier', 'XGBRegressor'].includes(settings?.method ?? '')
  if (settings === undefined || !isKnown || settings.node.type !== 'call' || train.receiver?.kind !== 'made')
    refuseCall(train, 'trains in a way that this analysis does not change')
  checkWritten(settings)
  if (positionalNodes(settings).length > 0) refuseCall(settings, 'is given parameters without their names')
  return {
    train,
    settings,
    parameters: settings.named,
    rounds: { name: 'n_estimators', position: undefined, default: 100 },
  }
}

function roundsNode({ settings, rounds }: Boosting): SyntaxNode | undefined {
  const named = namedNode(settings, rounds.name)
  return named ?? (rounds.position === undefined ? undefined : positionalNodes(settings)[rounds.position])
}

function checkRounds({ train, settings }: Boosting): void {
  if (train.positional.length > 3) refuseCall(train, 'is given more than three arguments without their names')
  for (const call of [train, settings]) {
    if (!isUnset(call.named.get('early_stopping_rounds')))
      refuseCall(call, 'counts rounds without progress (early_stopping_rounds), which no model holds')
    if (!isUnset(call.named.get('evals_result'))) refuseCall(call, ONLY_LAST)
  }
}

const ONLY_LAST =
  'has the results of each round (evals_result), and a resumed run has only those after its start'

/** Values with which XGBoost draws no random numbers. Models do not contain its random state. */
const DRAWS_NOTHING: Readonly<Record<string, readonly unknown[]>> = {
  booster: ['gbtree'],
  subsample: [1],
  colsample_bytree: [1],
  colsample_bylevel: [1],
  colsample_bynode: [1],
  num_parallel_tree: [1],
  process_type: ['default'],
  updater: [],
  feature_selector: [],
}

function checkParameters({ parameters, settings }: Boosting): void {
  for (const [name, allowed] of Object.entries(DRAWS_NOTHING)) {
    if (isUnset(parameters.get(name), ...allowed)) continue
    refuseCall(
      settings,
      `has ${name}, with which XGBoost draws random numbers or changes earlier trees; a resumed run would differ`,
    )
  }
  if (textOf(parameters.get('objective'))?.startsWith('rank:') === true)
    refuseCall(settings, 'ranks pairs that XGBoost draws at random, so that a resumed run would differ')
}

/** Callbacks without a state that a run depends on. */
const CALLBACKS = new Set(['TrainingCheckPoint', 'EvaluationMonitor'])

/** The program's own callback that saves. Refuses callbacks that count. */
function ownSaving({ settings }: Boosting): CallEvent | undefined {
  const calls = callbacksOf(settings).map((item) => {
    const call = callbackCall(item)
    if (call?.method === 'EarlyStopping')
      refuseCall(call, 'counts rounds without progress, which no model holds')
    if (call?.method === 'LearningRateScheduler')
      refuseCall(call, 'gives learning rates by the round, and a resumed run counts from 0 again')
    if (call === undefined || (!isOwnCallback(item) && !CALLBACKS.has(call.method)))
      refuseCall(call ?? settings, 'is a callback whose state this analysis does not know')
    checkCounting(item)
    return call
  })
  return calls.find(
    ({ method, named }) => method === 'TrainingCheckPoint' && isUnset(named.get('as_pickle'), false),
  )
}

/** XGBoost counts the rounds of each run from 0, so a callback that uses the number behaves differently in a resumed run. */
function checkCounting(item: Value): void {
  for (const each of alternatives(item)) {
    if (each.kind !== 'instance') continue
    for (const hook of ['before_iteration', 'after_iteration']) {
      const member = memberOfClass(each.definition, hook)
      if (member?.kind !== 'function') continue
      const { node, file } = member.definition
      const parameters = childAt(node, 'parameters')!.children.map(parameterName)
      const use = useOf(childAt(node, 'body')!, parameters[2])
      if (use !== undefined)
        refuse(file.path, use, 'depends on the number of the round, which a resumed run counts from 0 again')
      const stop = [...nodesOf(node)].find(
        (each) =>
          each.type === 'return_statement' && !['return', 'return False', 'return None'].includes(each.text),
      )
      if (stop !== undefined)
        refuse(file.path, stop, 'may end the training, which no model holds: a resumed run would add rounds')
    }
  }
}

/** Where a name is read, other than to print it. */
function useOf(node: SyntaxNode, name: string | undefined): SyntaxNode | undefined {
  if (node.type === 'identifier') return node.text === name ? node : undefined
  if (node.type === 'call' && childAt(node, 'function')!.text === 'print') return undefined
  for (const child of node.children) {
    const found = child.field === 'attribute' ? undefined : useOf(child, name)
    if (found !== undefined) return found
  }
  return undefined
}
