// What a function finds around it, and what Rust calls to run it. Evaluated first in a new engine. Nothing in here may look
// up anything that a script can change: built-in functions are taken now, and texts are built by operators.
//
// Nothing that a script makes lives longer than one call: what is there before is frozen, and the function itself, with
// everything that its source declares around it, and the modules that it requires are made for each call.
(function (host, emittedMax, emittedBytesMax, logMax, moduleTexts, thisText) {
  'use strict';
  const { apply } = Reflect;
  const { parse, stringify } = JSON;
  const { create, freeze, keys: ownNames, setPrototypeOf } = Object;
  const { isArray } = Array;
  const { floor, imul } = Math;
  const { charCodeAt, includes, slice, toWellFormed } = String.prototype;
  const PlainError = Error, EngineError = InternalError, LengthError = RangeError, GrammarError = SyntaxError;
  const KindError = TypeError;
  const TEXT_MAX = 1000;

  const makers = setPrototypeOf([], null);
  const looseMakers = setPrototypeOf([], null);
  const emittedKeys = setPrototypeOf([], null);
  const emittedValues = setPrototypeOf([], null);
  let emitted = 0, logged = 0, excess = false, document = null, modules = null, chance = 0;

  function begin() {
    emitted = 0;
    emittedKeys.length = 0;
    emittedValues.length = 0;
    logged = 0;
    excess = false;
    modules = null;
    chance = 0;
  }

  function emit(key, value) {
    if (emitted === emittedMax) {
      excess = true;
      throw new LengthError('too much is emitted for one document');
    }
    emittedKeys[emitted] = key;
    emittedValues[emitted] = value;
    emitted++;
  }

  function sum(values) {
    let total = 0;
    if (isArray(values)) {
      for (let place = 0; place < values.length; place++) total += values[place];
    } else {
      for (const name in values) total += values[name];
    }
    return total;
  }

  function shown(value) {
    let text = typeof value === 'string' ? value : stringify(value);
    if (text === undefined) text = typeof value;
    return apply(toWellFormed, apply(slice, text, [0, TEXT_MAX]), []);
  }

  function log(value) {
    if (logged < logMax) {
      logged++;
      host.log(shown(value));
    }
  }

  // The numbers of a call begin at what the document is, so that nobody learns from them what came before, and a view that
  // is built again gets the same ones.
  function random() {
    if (chance === 0) {
      const name = typeof document === 'object' && document !== null ? `${document._id} ${document._rev}` : '';
      chance = 0x9e3779b9;
      for (let place = 0; place < name.length; place++) {
        chance = imul(chance ^ apply(charCodeAt, name, [place]), 0x01000193);
      }
      chance = chance | 1;
    }
    const next = () => {
      chance ^= chance << 13;
      chance ^= chance >>> 17;
      chance ^= chance << 5;
      return (chance >>> 0) / 4294967296;
    };
    return (floor(next() * 2097152) * 4294967296 + floor(next() * 4294967296)) / 9007199254740992;
  }

  // CommonJS modules, as CouchDB loads them from `views.lib`. A module that is required in a circle is given as far
  // as it has come.
  const texts = moduleTexts === undefined ? create(null) : setPrototypeOf(parse(moduleTexts), null);
  const compiled = create(null);

  function requirer(folder) {
    return function require(name) {
      const path = host.resolve(folder, `${name}`);
      if (texts[path] === undefined) throw new PlainError(`invalid_require_path: there is no module ${path}`);
      if (modules === null) modules = create(null);
      if (modules[path] === undefined) {
        const module = { id: path, exports: {} };
        const parent = host.resolve(path, '..');
        modules[path] = module;
        let done = false;
        try {
          if (compiled[path] === undefined) compiled[path] = host.module(path, texts[path]);
          apply(compiled[path], globalThis, [module, module.exports, requirer(parent)]);
          done = true;
        } finally {
          if (!done) modules[path] = undefined;
        }
        sealedModule(module.exports);
      }
      return modules[path].exports;
    };
  }

  function sealed(value) {
    freeze(value);
    const names = ownNames(value);
    for (let place = 0; place < names.length; place++) {
      const inner = value[names[place]];
      if (typeof inner === 'object' && inner !== null) sealed(inner);
    }
  }

  // What a module gives, and what lies right in it.
  function sealedModule(value) {
    if (typeof value !== 'object' && typeof value !== 'function' || value === null) return;
    const names = ownNames(value);
    freeze(value);
    for (let place = 0; place < names.length; place++) {
      const inner = value[names[place]];
      if (typeof inner === 'object' && inner !== null || typeof inner === 'function') freeze(inner);
    }
  }

  const self = thisText === undefined ? undefined : parse(thisText);
  if (typeof self === 'object' && self !== null) sealed(self);

  // A line of JSON for each key and each value; JSON that is not indented has no line ends of its own.
  function lines() {
    let text = '';
    for (let place = 0; place < emitted; place++) {
      const key = stringify(emittedKeys[place]);
      const value = stringify(emittedValues[place]);
      text += (key === undefined ? 'null' : key) + '\n' + (value === undefined ? 'null' : value) + '\n';
      if (text.length > emittedBytesMax) return null;
    }
    return text;
  }

  function mapped(maker, given) {
    begin();
    try {
      maker()(given);
      return excess ? null : lines();
    } catch (thrown) {
      if (excess) return null;
      throw thrown;
    }
  }

  // What a validation throws at those who write: a letter and words.
  function refusal(thrown) {
    if (typeof thrown !== 'object' || thrown === null || thrown instanceof PlainError) return null;
    const { forbidden, unauthorized } = thrown;
    if (forbidden !== undefined) return 'F' + shown(forbidden);
    if (unauthorized !== undefined) return 'U' + shown(unauthorized);
    return null;
  }

  // The engine's words for an assignment to what cannot be changed.
  const refusals = ['read-only', 'not extensible', 'no setter for property', 'could not delete property',
    'cannot define variable'];

  function isWrite(thrown, message) {
    if (!(thrown instanceof KindError)) return false;
    for (let place = 0; place < refusals.length; place++) {
      if (apply(includes, message, [refusals[place]])) return true;
    }
    return false;
  }

  // Named in the order in which Rust takes them.
  return {
    environment: { emit, sum, log, isArray: (value) => isArray(value), require: requirer('') },
    random,
    // A function is made by its maker, again each time. Given is one in strict mode, if there is one, and one without.
    add(maker, looseMaker) {
      begin();
      const candidate = maker();
      if (typeof candidate !== 'function') return typeof candidate;
      makers[makers.length] = maker;
      looseMakers[looseMakers.length] = looseMaker;
      return null;
    },
    // Keeps the place of a function that is left out.
    skip() {
      makers[makers.length] = null;
      looseMakers[looseMakers.length] = null;
    },
    open(parsed) {
      document = parsed;
      if (typeof parsed === 'object' && parsed !== null) sealed(parsed);
    },
    // The lines that function `index` emitted for the document; null if they are too many.
    map(index) { return mapped(makers[index], document); },
    // The same with a document of its own, which may be changed.
    mapOwn(index, own) { return mapped(makers[index], own); },
    // The same where an assignment to what cannot be changed does nothing.
    mapLoosely(index) { return mapped(looseMakers[index], document); },
    reduce(keys, values, again) {
      begin();
      document = null;
      const text = stringify(makers[0]()(again ? null : keys, values, again));
      return text === undefined ? 'null' : text;
    },
    // Nothing, or why the edit is refused.
    validate(newDocument, oldDocument, user, security) {
      begin();
      document = newDocument;
      try {
        apply(makers[0](), self, [newDocument, oldDocument, user, security]);
        return '';
      } catch (thrown) {
        const refused = refusal(thrown);
        if (refused === null) throw thrown;
        return refused;
      }
    },
    // A text if the document may pass, or none.
    filter(given, request) {
      begin();
      document = given;
      return apply(makers[0](), self, [given, request]) ? '1' : '';
    },
    // A letter, and the document to store and the answer as JSON, or why the request is refused.
    update(given, request) {
      begin();
      document = given;
      let answered;
      try {
        answered = apply(makers[0](), self, [given, request]);
      } catch (thrown) {
        const refused = refusal(thrown);
        if (refused === null) throw thrown;
        return refused;
      }
      if (!isArray(answered)) throw new KindError('an update function returns an array: the document and the answer');
      const stored = stringify(answered[0]), answer = stringify(answered[1]);
      return `A[${stored === undefined ? 'null' : stored},${answer === undefined ? 'null' : answer}]`;
    },
    // What was thrown: a letter for its kind, where it came from, and a text for people.
    describe(thrown) {
      begin();
      try {
        if (!(thrown instanceof PlainError)) return `T\n\n${shown(thrown)}`;
        const stack = `${thrown.stack}`, message = `${thrown.message}`;
        let kind = 'T';
        if (thrown instanceof EngineError && message === 'out of memory') kind = 'M';
        if (thrown instanceof LengthError && message === 'Maximum call stack size exceeded') kind = 'S';
        if (thrown instanceof GrammarError) kind = 'X';
        if (isWrite(thrown, message)) kind = 'W';
        const first = apply(slice, stack, [0, TEXT_MAX]);
        return `${kind}\n${stringify(first)}\n${shown(kind === 'X' ? message : `${thrown.name}: ${message}`)}`;
      } catch {
        return 'T\n\na value that cannot be shown';
      }
    },
  };
})
