/** Findings on whether the program saves while it trains, and whether it can continue. */
import { evidenceOf, isCalled, lastPart, spelled, type Facts } from '../facts'
import { CERTAIN, found, LIKELY, notKnown, POSSIBLE, type Findings, type How } from '../report'
import type { Guard } from '../flow'
import type { SyntaxNode } from '../syntax'
import { textOf, truthOf, type CallEvent, type Option, type Value } from '../values'
import type { Part } from './contents'
import {
  findDirectory,
  guardsOf,
  isGivenByCrucible,
  namesPlace,
  optionWords,
  pathText,
  placeOfSave,
  RESTORED,
} from './places'
import type { Load } from './load'
import { loadsOf, optionsOfStart, restoresStep } from './loads'
import { refusedByTorch } from './refused-loads'
import type { Save } from './save'
import { savesOf } from './saves'

type CheckpointFindings = Pick<
  Findings,
  'saveKind' | 'savesCheckpoints' | 'saveEvery' | 'canResume' | 'checkpointDirectory' | 'resumeOption'
>

export function findCheckpoints(facts: Facts): CheckpointFindings {
  const saves = savesOf(facts)
  const kind = kindOf(saves)
  const deciding = saves.filter((save) => (kind === 'periodic' || kind === 'flag' ? save.isPeriodic : true))
  const evidence = deciding.map(({ event }) => evidenceOf(event))
  const how = kind === 'flag' ? howOf(saves.filter(({ truth }) => truth === false)) : howOf(deciding)
  const confidence = confidenceOf(facts, saves)
  const isPeriodic = kind === 'periodic'
  const { canResume, load, isEnough } = findResume(facts, saves, confidence)
  return {
    saveKind: found(kind, { confidence, evidence, how }),
    savesCheckpoints: found(isPeriodic, { confidence, evidence, how }),
    saveEvery: everyOf(saves, kind),
    canResume,
    checkpointDirectory: findDirectory(
      facts,
      saves.filter((save) => isDuringTraining(save, kind)),
    ),
    resumeOption: findResumeOption(facts, { canResume, load, isEnough }, saves),
  }
}

const isDuringTraining = ({ isPeriodic, truth }: Save, kind: string): boolean =>
  isPeriodic && (kind === 'periodic' ? truth !== false : kind === 'flag')

function kindOf(saves: readonly Save[]): 'periodic' | 'flag' | 'final_only' | 'none' {
  const reached = saves.filter(({ truth }) => truth !== false)
  if (reached.some(({ isPeriodic }) => isPeriodic)) return 'periodic'
  const flagged = saves.filter(({ truth, options }) => truth === false && options.length > 0)
  if (flagged.some(({ isPeriodic }) => isPeriodic)) return 'flag'
  if (reached.length > 0) return 'final_only'
  return flagged.length > 0 ? 'flag' : 'none'
}

function confidenceOf(facts: Facts, saves: readonly Save[]): number {
  if (facts.run.isCut || (saves.length === 0 && savesElsewhere(facts))) return POSSIBLE
  const isPlain = saves.every(({ parts }) => parts.size > 0)
  const isOpen = facts.training.some(({ engine }) => engine === 'estimator') && saves.length === 0
  return isPlain && !isOpen ? CERTAIN : LIKELY
}

/** Whether a class outside the project may save and restore. PyTorch's own classes of that name recompute activations. */
function savesElsewhere({ events }: Facts): boolean {
  return events.some(({ name }) => /\.\w*Checkpoint/.test(name) && !name.startsWith('torch.'))
}

function howOf(saves: readonly Save[]): How | null {
  const [save] = saves
  if (save === undefined) return null
  const [option] = save.options
  const call = evidenceOf(save.event).text
  return {
    option: option === undefined ? null : spelled(option, save.event.guards),
    call,
    isGiven: save.truth !== false,
  }
}

function everyOf(saves: readonly Save[], kind: string): Findings['saveEvery'] {
  if (kind !== 'periodic') return notKnown<string>()
  const periodic = saves.filter(({ isPeriodic, truth }) => isPeriodic && truth !== false)
  const known = periodic.filter(({ every }) => every !== undefined)
  const [save] = known
  if (save === undefined) return notKnown<string>('the interval depends on the run')
  const isOne = new Set(known.map(({ every }) => every)).size === 1
  return found(save.every!, {
    confidence: isOne ? CERTAIN - 0.03 : POSSIBLE,
    evidence: known.map(({ event }) => evidenceOf(event)),
  })
}

interface Resume {
  canResume: Findings['canResume']
  /** The call by which a user makes it continue. */
  load?: Load | undefined
  /** Whether the program continues with the command as it is. */
  isEnough?: boolean
}

function findResume(
  facts: Facts,
  saves: readonly Save[],
  confidence: number,
  isCounted: (load: Load) => boolean = () => true,
): Resume {
  const usable = saves.filter(({ truth, options }) => truth !== false || options.length > 0)
  const loads = loadsOf(facts, usable).filter(
    (load) => isCounted(load) && isOfEarlierRun(load, usable) && !isOfThisRun(facts, load, usable),
  )
  if (loads.length === 0 || usable.length === 0) {
    const missing =
      usable.length === 0 ? ['no save is enough for a run to continue'] : ['no call restores a save']
    const evidence = usable.slice(0, 1).map(({ event }) => evidenceOf(event))
    return { canResume: found('no', { confidence, missing, evidence }) }
  }
  const { restored, lacking } = restoredBy(facts, loads, usable)
  const evidence = loads.map(({ event }) => evidenceOf(event))
  if (!restored.has('model'))
    return {
      canResume: found('no', { confidence: LIKELY, evidence, missing: ['the model is not restored'] }),
    }
  const refused = refusedByTorch(loads, usable)
  if (refused !== undefined)
    return { canResume: found('no', { confidence: LIKELY, evidence, missing: [refused] }) }
  const reached = loads.filter(isReachedAsIs)
  const isEnough =
    optionsOfStart(facts).length === 0 && restoredBy(facts, reached, usable).lacking.length === lacking.length
  const closed = loads.filter((load) => !reached.includes(load))
  const load = decidingLoad(isEnough && reached.length > 0 ? reached : closed.length > 0 ? closed : loads)
  const isOpen = load.isWhole && load.truth !== false && isUnexplained(load.path)
  const known = {
    confidence: isOpen ? LIKELY : Math.min(confidence, CERTAIN),
    evidence,
    how: howToResume(facts, { load, isEnough }, usable),
  }
  const missing = lacking.map((part) => `${WORDS[part] ?? part} not restored`)
  return {
    load,
    isEnough,
    canResume: lacking.length === 0 ? found('yes', known) : found('partial', { ...known, missing }),
  }
}

/** Keeps the step only if the loop reads the state's own step, as in `range(state['epoch'], n)`. */
function removeStepUnlessKept(restored: Set<Part>, facts: Facts, loads: readonly Load[]): void {
  const isFabric = loads.some(({ event, parts }) => event.method === 'load' && parts.has('step'))
  const reads = facts.run.loops.some(
    (loop) =>
      loop.kind === 'for' && loop.iterated.kind === 'made' && loop.iterated.call.positional.length > 1,
  )
  if (!isFabric || !reads) restored.delete('step')
}

const NEEDED: readonly Part[] = ['model', 'optimizer', 'step']

/** Returns the needed parts. A schedule of the learning rate counts its own steps, unless `last_epoch` sets its beginning. */
function neededParts({ events, training }: Facts): readonly Part[] {
  // Estimators keep the state of their optimizer, and boosting has none.
  if (training.every(({ engine, event }) => engine === 'estimator' || event.method === 'partial_fit'))
    return ['model', 'step']
  const hasSchedule = events.some(
    (event) =>
      (/^torch\.optim\.lr_scheduler\.\w+$/.test(event.name) ||
        /^get_\w*schedule/.test(lastPart(event.name))) &&
      !event.named.has('last_epoch'),
  )
  return hasSchedule ? [...NEEDED, 'scheduler'] : NEEDED
}

const WORDS: Partial<Record<Part, string>> = {
  optimizer: 'the optimizer is',
  step: 'the step or epoch is',
  model: 'the model is',
  scheduler: 'the schedule of the learning rate is',
}

/** Whether nothing in the program shows which checkpoint a library gets, if any. */
const isUnexplained = (path: Value | undefined): boolean =>
  path !== undefined &&
  path.kind !== 'constant' &&
  path.options.size === 0 &&
  path.origins.length === 0 &&
  !isGivenByCrucible(pathText(path))

/** Whether the program has certainly written the file before it loads it, such as its best model for a test. */
function isOfThisRun({ events }: Facts, { event, path }: Load, saves: readonly Save[]): boolean {
  const text = textOf(path)
  if (text === undefined || path!.options.size > 0) return false
  const at = events.indexOf(event)
  return saves.some((save) => {
    const written = events.indexOf(save.event)
    return written !== -1 && written < at && textOf(placeOfSave(save).path) === text
  })
}

/** Whether a load belongs to an earlier run. Initial weights of the run, such as a pretrained backbone, are not its checkpoint. */
function isOfEarlierRun(load: Load, saves: readonly Save[]): boolean {
  if (load.truth === false && load.options.length === 0) return false
  if (load.isWhole) return true
  const path = pathText(load.path)
  if (path === undefined || load.path === undefined) return true
  if (load.path.options.size > 0 || load.path.origins.length > 0) return true
  if (isGivenByCrucible(path)) return true
  const written = saves.map((save) => pathText(placeOfSave(save).path)).filter((text) => text !== undefined)
  return written.length < saves.length || written.some((text) => firstFolder(text) === firstFolder(path))
}

/** The folder in which a checkpoint is, or its name without one. */
function firstFolder(path: string): string {
  const bare = path.startsWith('./') ? path.slice(2) : path
  const at = bare.indexOf('/')
  return at === -1 ? bare : bare.slice(0, at)
}

/** The parts that loads restore, and the needed ones that they or the saves lack. */
function restoredBy(
  facts: Facts,
  loads: readonly Load[],
  saves: readonly Save[],
): { restored: ReadonlySet<Part>; lacking: readonly Part[] } {
  const restored = new Set<Part>(loads.flatMap(({ parts }) => [...parts]))
  if (!loads.some(({ isWhole }) => isWhole) && loads.some((load) => restoresStep(facts, load)))
    restored.add('step')
  else if (!loads.some(({ isWhole }) => isWhole)) removeStepUnlessKept(restored, facts, loads)
  if (forgetsOptimizer(facts, loads)) restored.delete('optimizer')
  const saved = new Set<Part>(saves.flatMap(({ parts }) => [...parts]))
  const lacking = neededParts(facts).filter(
    (part) => !restored.has(part) || (!saved.has(part) && part !== 'step'),
  )
  return { restored, lacking }
}

/** Whether the program restores some of its optimizers and takes steps with another one. An optimizer of unknown origin proves nothing. */
function forgetsOptimizer({ training }: Facts, loads: readonly Load[]): boolean {
  const restored = loads.filter(({ parts }) => parts.has('optimizer')).map(({ event }) => madeBy(event))
  if (restored.length === 0 || restored.includes(undefined)) return false
  const stepping = training
    .filter(({ event }) => event.method === 'step' && isCalled(event))
    .map(({ event }) => madeBy(event))
  return stepping.some((node) => node !== undefined && !restored.includes(node))
}

/** The call that made the optimizer of PyTorch whose method is called. */
function madeBy({ receiver, name }: CallEvent): SyntaxNode | undefined {
  return receiver?.kind === 'made' && name.startsWith('torch.optim.') ? receiver.call.node : undefined
}

/** Whether the program comes to a load, and has a path for it, with the command as it is. */
const isReachedAsIs = ({ truth, path }: Load): boolean => {
  const needed = [...(path?.options ?? [])].filter((each) => each.given === undefined && isLeftOut(each))
  return truth !== false && ((path?.origins.length ?? 0) > 0 || needed.length === 0)
}

/** The load that the command asks for, or that an option turns on, of the file with the most parts. */
function decidingLoad(loads: readonly Load[]): Load {
  const partsOf = ({ event, source = event }: Load): number => {
    const others = loads.filter((load) => (load.source ?? load.event).node === source.node)
    return new Set(others.flatMap(({ parts }) => [...parts])).size
  }
  const most = Math.max(...loads.map(partsOf))
  const candidates = loads.filter((load) => partsOf(load) === most)
  return (
    loads.find((load) => load.truth !== false && isPathGiven(load)) ??
    candidates.find(
      ({ event, options }) => options.length > 0 || event.guards.some(({ wants }) => wants !== undefined),
    ) ??
    candidates[0]!
  )
}

/** A path that depends on more options than this is not one that the user names. */
const NAMED_MAX = 2

/** The option on the path of the file that is loaded, or the one of the innermost condition on the way to the load. */
function optionToResume(
  facts: Facts,
  { load, isEnough }: Required<Pick<Resume, 'isEnough'>> & { load: Load },
  saves: readonly Save[],
): Option | undefined {
  // An option with a default, such as the folder of the results, turns nothing on.
  const inPath = [...(load.path?.options ?? [])]
  const named = inPath.length > NAMED_MAX ? [] : inPath.filter(isLeftOut)
  return [...named, ...optionsAsked(facts, load), ...optionsOfStart(facts)].find(
    (option) => isEnough === (option.given !== undefined) && !saves.some((save) => namesPlace(save, option)),
  )
}

/**
 * Returns the options that the conditions on the way to the load ask for, the innermost first. It leaves out options that only choose
 * between calls that all reach the load, and options whose condition is true in any case.
 */
function optionsAsked(facts: Facts, { event }: Load): Option[] {
  const ways = facts.events.filter(({ node }) => node === event.node).map(({ guards }) => askedBy(guards))
  const asked = askedBy(event.guards).toReversed()
  return asked.filter((option) => ways.every((way) => way.includes(option)))
}

const askedBy = (guards: readonly Guard[]): Option[] =>
  guards.flatMap(({ wants, truth, condition }) => {
    if (wants === undefined) return []
    const isDecided = truth === undefined ? condition.options.size === 1 : truth === false
    return isDecided || wants.option.given !== undefined ? [wants.option] : []
  })

/** Whether the command names the loaded file, such as `--resume last.pt`. */
const isPathGiven = ({ path }: Load): boolean =>
  [...(path?.options ?? [])].some((each) => each.given !== undefined && isLeftOut(each))

/** Whether a first run leaves an option out: the program needs no value of it, and has no default. */
const isLeftOut = ({ isRequired, default: initial }: Option): boolean =>
  !isRequired && truthOf(initial) !== true

function howToResume(
  facts: Facts,
  resume: Required<Pick<Resume, 'isEnough'>> & { load: Load },
  saves: readonly Save[],
): How {
  const { load } = resume
  const option = optionToResume(facts, resume, saves)
  return {
    option: option === undefined ? null : spelled(option, guardsOf(load)),
    call: evidenceOf(load.event).text,
    isGiven:
      load.truth !== false && (option === undefined || option.given !== undefined || isPathGiven(load)),
  }
}

/** The words that make the program continue, if it needs any: those with which the program certainly can reach the load. */
function findResumeOption(
  facts: Facts,
  { canResume, load, isEnough = false }: Resume,
  saves: readonly Save[],
): Findings['resumeOption'] {
  const { confidence, evidence } = canResume
  const option = load === undefined ? undefined : optionToResume(facts, { load, isEnough }, saves)
  if (load === undefined || option === undefined)
    return notKnown<string>('no option makes the program continue')
  if (canResume.how?.isGiven === true) return notKnown<string>('the command gives the option already')
  const words = optionWords(facts, load, option)
  if (words === undefined) return notKnown<string>(`what value ${option.name} takes`)
  const after = facts.again(words.replace(`"${RESTORED}"`, STANDS_FOR_RESTORED))
  if (after === undefined) return notKnown<string>('the command does not pass options on to the program')
  const resumed = findResume(after, savesOf(after), confidence, ({ truth }) => truth !== false)
  const isReached = resumed.canResume.value === canResume.value && resumed.canResume.how?.isGiven === true
  if (!isReached || movesSaves(after) || !isLoaded(resumed, option, words))
    return notKnown<string>(`whether ${option.name} is enough`)
  return found(words, { confidence: Math.min(confidence, CERTAIN - 0.03), evidence })
}

/** Whether an option changes where the program saves, and not only what it loads. */
const movesSaves = (facts: Facts): boolean =>
  savesOf(facts).some((save) => pathText(placeOfSave(save).path)?.startsWith(STANDS_FOR_RESTORED) === true)

/** A path in place of the one that Crucible gives, for a second reading of the program. */
const STANDS_FOR_RESTORED = 'restored-by-crucible/restored-checkpoint'

/** Whether a program that gets the words loads what they name. */
function isLoaded({ load }: Resume, { key }: Option, words: string): boolean {
  if (!words.includes(RESTORED)) return load !== undefined
  const text = pathText(load?.path)
  if (text !== undefined && !text.includes('{}')) return text.includes(lastName(STANDS_FOR_RESTORED))
  return [...(load?.path?.options ?? [])].some((option) => option.key === key)
}

const lastName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
